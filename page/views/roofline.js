// This view shows tile sizes on the roofline: what a tile asks of memory and of a multiprocessor,
// and how far it can get on a chip.
import {explainMeasured} from '../facts/bench.js';
import {legend, mark, plot} from '../parts/chart.js';
import {formatBytes, formatCount, formatRate, formatShare, formatTime} from '../parts/format.js';
import {LIMITERS} from '../facts/model.js';
import {findRegisters, findRow, listBlockTiles, listMeasuredPoints, listPredicted,
        listRegisterTiles} from '../facts/roofline_points.js';

// LOOKS says how each kind of point is marked.
const LOOKS = {
    rung: {shape: 'circle', series: 1, size: 4},
    row: {shape: 'triangle', series: 5, size: 5},
    chosen: {shape: 'diamond', series: 2, size: 8},
    counted: {shape: 'cross', series: 3, size: 5, isHollow: true},
    other: {shape: 'square', series: 4, size: 5, isHollow: true},
};
const NAME_PIXELS = 6.6; // width of a letter
const NAME_RISE = 14;    // height of a name above its point
const findLook = point => point.isChosen ? LOOKS.chosen : LOOKS[point.kind] ??
    (point.isCounted ? LOOKS.counted : LOOKS.other);

// Makes axes whose domains hold the points and the roof's edge.
function makeAxes(points, chip) {
    const rates = points.map(point => point.rate);
    const intensities = [...points.map(point => point.intensity), chip.ridge * 8];
    return {
        x: {label: 'FLOP a byte that threads ask for', isLog: true, format: formatCount,
            domain: [Math.min(...intensities) / 2, Math.max(...intensities) * 1.5]},
        y: {label: 'GFLOP/s', isLog: true, format: value => formatCount(value / 1e9),
            domain: [Math.min(...rates, chip.peak) / 2, Math.max(chip.peak * 2, ...rates) * 1.5]},
    };
}

function drawRoof(app, chart, {peak, ridge}) {
    const slope = peak / ridge;
    const [[low, high], [bottom]] = [chart.x.domain(), chart.y.domain()];
    const start = Math.max(low, bottom / slope);
    const path = [[start, slope * start], [ridge, peak], [high, peak]]
        .map(([intensity, rate]) => `${chart.x(intensity)} ${chart.y(rate)}`).join('L');
    chart.add(app.svg('path', {d: `M${path}`, fill: 'none', stroke: 'var(--text)',
                               'stroke-width': 2}),
        app.svg('text', {x: chart.x(high), y: chart.y(peak) - 6, 'text-anchor': 'end'},
                `peak ${formatRate(peak)}`));
}

function drawChart(app, points, chip, width) {
    const chart = plot({label: `Roofline of ${app.state.chip}: rate over intensity`, width,
                        ...makeAxes(points, chip)});
    drawRoof(app, chart, chip);
    for (const point of points) {
        const {shape, ...look} = findLook(point);
        chart.add(mark(shape, chart.x(point.intensity), chart.y(point.rate), {...look,
            title: `${point.name}: ${formatRate(point.rate)} ` +
                   `${point.kind ? 'predicted' : 'measured'}`}));
    }
    const chosen = points.find(point => point.isChosen);
    if (chosen) {
        const half = NAME_PIXELS / 2 * chosen.name.length;
        const above = chart.y(chosen.rate) - NAME_RISE;
        const isAtPeak = Math.abs(above - chart.y(chip.peak)) < 2 * NAME_RISE; // has its name
        chart.add(app.svg('text', {
            x: Math.min(Math.max(half, chart.x(chosen.intensity)), chart.inner.width - half),
            y: isAtPeak ? above + 3 * NAME_RISE : above, 'text-anchor': 'middle', class: 'note'},
        chosen.name));
    }
    const has = look => points.some(point => findLook(point) === look);
    return app.html('div', {}, [chart.node, legend(app, [
        {look: LOOKS.rung, text: 'predicted, a rung of the ladder'},
        {look: LOOKS.row, text: 'predicted, the planner\'s choice'},
        {look: LOOKS.chosen, text: 'predicted, the tile of the sliders'},
        {look: LOOKS.counted, text: 'measured, a kernel of this library'},
        {look: LOOKS.other, text: 'measured, libraries: placed at A, B and D moved once'},
    ].filter(({look}) => has(look)).map(({look, text}) => ({...look, size: 5, text})))]);
}

const listRows = (predicted, measured) => [
    ...predicted.map(point => [
        point.name + (point.isChosen ? ' (chosen)' : ''), 'predicted', point.intensity,
        point.rate === null ? '-' : point.rate / 1e9, point.sharedBytes, point.threads,
        formatShare(point.occupancy), point.refusal || point.verdict || point.bound]),
    ...measured.map(point => [
        point.name, `measured: ${point.origin}`, point.intensity, point.rate / 1e9, '-', '-', '-',
        point.isRight ? '' : 'WRONG RESULT']),
];

function sayVerdict(point, chip) {
    if (point.refusal)
        return ['not legal', `: ${point.refusal}. No time is predicted for it.`];
    const isLow = point.intensity < chip.ridge;
    return [point.bound ? `${point.bound} bound` : point.name,
            `: ${formatCount(point.intensity)} FLOP a byte is ${isLow ? 'below' : 'not below'} ` +
            `the ridge of ${formatCount(chip.ridge)}; ` + (point.limiter
                ? `by the model, ${LIMITERS[point.limiter]} takes longest.`
                : `${point.verdict}.`)];
}

// Describes the tile of the sliders in words and numbers. What the model does not tell is left out.
function describe(app, point, chip) {
    const [head, rest] = sayVerdict(point, chip);
    const known = [
        ['kernel', point.name],
        ['FLOP a byte asked for', point.refusal ? point.intensity || '-' : point.intensity],
        ['shared memory a block', formatBytes(point.sharedBytes)],
        ['threads a block', point.threads],
        ['registers a thread', point.registers],
        ['blocks a multiprocessor', point.blocks],
        ['occupancy', formatShare(point.occupancy) +
            (point.occupancyLimiter ? `, ended by ${point.occupancyLimiter}` : '')],
        ...point.refusal ? [] : [
            ['predicted time (estimate)', formatTime(point.seconds)],
            ['predicted rate (estimate)', formatRate(point.rate)],
            ['share of the peak (estimate)', formatShare(point.rate / chip.peak)]],
    ].filter(([, value]) => value !== undefined);
    return [app.html('p', {}, [app.html('strong', {}, head), rest]),
            app.table(['what', {label: 'value', isRight: true}], known)];
}

function makeSliders(app) {
    const find = (list, id) => list.find(one => one.id === id);
    return [
        app.slider({
            key: 'tile', label: 'tile of a block, T',
            values: () => listBlockTiles(app).map(one => one.id),
            read: state => findRow(app)?.name ?? String(state.tile),
            write: id => find(listBlockTiles(app), id).changes,
            format: id => find(listBlockTiles(app), id)?.label ?? id}),
        app.slider({
            key: 'registers', label: 'register tile of a thread',
            values: () => listRegisterTiles(app).map(one => one.id),
            read: () => findRegisters(app),
            write: id => find(listRegisterTiles(app), id).changes}),
    ];
}

export default {
    id: 'roofline',
    title: 'Roofline',
    state: {row: ''},
    mount(root, app) {
        const chart = app.figure('Rate over intensity');
        const verdict = app.html('div', {'aria-live': 'polite', class: 'verdict'});
        const origin = app.html('p', {class: 'hint'});
        root.append(
            app.html('p', {class: 'hint'}, 'A tile that is read once serves many products. The ' +
                'larger the tile, the more FLOP a byte; what ends it is room: shared memory, ' +
                'registers, threads. The line is DRAM\'s bandwidth and the peak: kernels above ' +
                'it live on caches.'),
            app.html('div', {class: 'controls'}, makeSliders(app)),
            app.html('div', {class: 'beside'}, [chart.node, verdict]), origin);
        const draw = () => {
            const explained = app.explain();
            const predicted = listPredicted(app);
            const measured = listMeasuredPoints(app);
            const chip = {peak: explained.peak_flop_per_s, ridge: explained.ridge_flop_per_byte};
            const points = [...predicted.filter(point => point.rate !== null), ...measured];
            const chosen = predicted.find(point => point.isChosen);
            origin.textContent = explainMeasured(app);
            verdict.replaceChildren(...chosen ? describe(app, chosen, chip)
                : [app.html('p', {role: 'alert', class: 'warn'}, explained.error)]);
            chart.show(points.length && chip.peak
                    ? drawChart(app, points, chip, app.measureWidth(root, 620))
                    : app.html('p', {class: 'hint'}, 'The model has no kernel at this size.'),
                ['kernel', 'by', 'FLOP/byte', 'GFLOP/s', 'shared bytes a block',
                 'threads a block', 'occupancy', {label: 'verdict', isWide: true}],
                listRows(predicted, measured));
        };
        app.on('change', draw);
        draw();
    },
};
