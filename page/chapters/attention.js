// Chapter: attention is two products with a softmax between them, and tiles keep its score matrix
// out of memory.
import {mark, plot} from '../parts/chart.js';
import {formatBytes, formatCount, formatTime} from '../parts/format.js';
import {drawSoftmax, formatWeight, runSoftmax} from '../pictures/softmax_picture.js';

const LENGTHS = [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
const HEADS = 4;
const HEAD_SIZE = 64;
const HEIGHT = 300;    // pixels of the chart
const SCORE_BYTES = 4; // bytes of a score
const MIB = 2 ** 20;
// SCORES are those of one query and eight keys, base 2; VALUES is one column of V.
const SCORES = [1, 3, 2, 0, 5, 2, 3, 4];
const VALUES = [8, 0, 4, 8, 2, 8, 0, 4];
const TILE = 2;
const STATES = runSoftmax(SCORES, VALUES, TILE);
const LINES = [{kernel: 'attention_naive', name: 'with the score matrix', series: 4,
                shape: 'square'},
               {kernel: 'attention_tiled', name: 'without it', series: 2,
                shape: 'circle'}];

const countBytes = told => told.dram_read_bytes + told.dram_write_bytes;

// Draws what DRAM moves against the length, with both at the chosen one.
function drawTraffic(app, explain, length, width) {
    const all = LINES.map(({kernel}) => LENGTHS.map(
        one => countBytes(explain(kernel, one)) / MIB));
    const chart = plot({label: 'Bytes that DRAM moves, by length', width, height: HEIGHT,
        x: {label: 'queries and keys', isLog: true, format: formatCount,
            domain: [LENGTHS[0], LENGTHS.at(-1) * 1.5]},
        y: {label: 'MiB of DRAM', isLog: true, format: formatCount,
            domain: [Math.min(...all.flat()) / 2, Math.max(...all.flat()) * 3]}});
    LINES.forEach(({name, series, shape}, i) => {
        const path = LENGTHS.map((one, j) => `${chart.x(one)} ${chart.y(all[i][j])}`).join('L');
        const place = LENGTHS.indexOf(length);
        const last = LENGTHS.length - 1;
        chart.add(
            app.svg('path', {d: `M${path}`, fill: 'none', stroke: `var(--series-${series})`,
                             'stroke-width': 2.5, 'stroke-dasharray': i ? null : '7 4'}),
            mark(shape, chart.x(length), chart.y(all[i][place]),
                 {series, size: 7, title: `${name}: ${formatBytes(MIB * all[i][place])}`}),
            app.svg('text', {x: chart.x(LENGTHS[last]), y: chart.y(all[i][last]) - 12,
                             'text-anchor': 'end', class: 'note roof-name'}, name));
    });
    return chart.node;
}

function describe(step, {largest, factor, total, sum}) {
    if (step === 0)
        return 'No key yet. The weights are powers of two of the scores s.';
    const change = step > 1 && factor < 1
        ? ` It is larger than before: the sums so far are multiplied by ${formatWeight(factor)}.`
        : step > 1 ? ' It is no larger than before: the sums so far stay.' : '';
    return `Largest score ${largest}.${change} Sum of weights ${formatCount(total)}, of weights ` +
        `times V ${formatCount(sum)}: the mean so far is ${formatCount(sum / total)}.`;
}

export default {
    title: 'Attention: scores that are never in memory',
    idea: ['Attention compares each query with each key, turns the scores into weights by a ' +
           'softmax, and averages the rows of V by them: two products. Stored, the scores of n ' +
           'queries and n keys take n x n numbers. FlashAttention tiles them: a block keeps one ' +
           'tile of scores, and where a larger score comes, it corrects what it has summed.'],
    state: {length: 4096, keyTiles: 2},
    closer: {view: 'ladder', label: 'See the ladder of products'},
    mount(app, {controls, picture, showFacts}) {
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(
            app.slider({key: 'length', label: 'queries and keys n:', values: () => LENGTHS,
                        format: formatCount}),
            app.slider({key: 'keyTiles', label: 'tiles of keys seen:', low: 0,
                        high: STATES.length - 1}));
        const explain = (kernel, length) => app.model.explainAttention(
            {kernel, heads: HEADS, m: length, n: length, size: HEAD_SIZE, chip: app.state.chip});
        return () => {
            const length = LENGTHS.includes(app.state.length) ? app.state.length : LENGTHS[6];
            const step = Math.min(Math.max(0, app.state.keyTiles), STATES.length - 1);
            const state = STATES[step];
            const [naive, tiled] = LINES.map(({kernel}) => explain(kernel, length));
            const mma = explain('attention_mma', length);
            shown.show(app.html('div', {}, [
                drawTraffic(app, explain, length, app.measureWidth(picture, 960)),
                app.html('div', {class: 'softmax-run'}, [
                    drawSoftmax(app.svg, {scores: SCORES, tile: TILE, step, state,
                        label: `Weights after ${step} of ${SCORES.length / TILE} tiles`}),
                    app.html('p', {class: 'softmax-words'}, describe(step, state))])]),
                ['rung', 'bytes of DRAM', 'bytes asked for', 'FLOP a byte asked for',
                 'predicted s'],
                [naive, tiled, mma].map(told => [told.family, countBytes(told),
                    told.global_read_bytes, told.flop_per_byte,
                    told.is_legal ? told.predicted_s : told.reason]),
                `${HEADS} heads of ${HEAD_SIZE} on ${app.findChip(app.state.chip).title}, by the ` +
                'model; below, one query whose keys come in tiles');
            const time = told => told.is_legal ? formatTime(told.predicted_s) : '-';
            showFacts([['score matrix', formatBytes(SCORE_BYTES * HEADS * length * length)],
                       ['DRAM moves with it', formatBytes(countBytes(naive))],
                       ['DRAM moves without', formatBytes(countBytes(tiled))],
                       ['predicted, naive', time(naive)], ['predicted, tiled', time(tiled)],
                       ['predicted, tensor cores', time(mma)]]);
        };
    },
};
