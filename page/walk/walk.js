// This view walks tile by tile: one block of D after another, phase by phase, with what its threads
// hold.
import {formatCount} from '../parts/format.js';
import {addPatterns, listenToClicks, makeScroll} from '../parts/drawing.js';
import {describeSource} from './walk_source.js';
import {countDone, makeWalk} from './walk_plan.js';
import {describeTiles, drawWalk, makePlanes, makeScale} from './walk_picture.js';
import {makePlayer} from './walk_player.js';
import {showShared, showSums, showTerms} from './walk_tiles.js';
import {makeValues} from './walk_values.js';
import {makeTiling} from '../facts/tiling.js';

const PRESETS = [
    {label: '4 x 4, tile 2: the walkthrough', state: {m: 4, n: 4, k: 4, kernel: 'tiled', tile: 2}},
    {label: 'Edges: 6 x 7 x 5, tile 4', state: {m: 6, n: 7, k: 5, kernel: 'edges', tile: 4}},
    {label: '5 x 7 x 9, tile 3', state: {m: 5, n: 7, k: 9, kernel: 'edges', tile: 3}},
    {label: '55 x 43 x 48, tile 16', state: {m: 55, n: 43, k: 48, kernel: 'edges', tile: 16}},
];

const NAMES = {load: 'load', barrier: 'barrier', multiply: 'multiply', store: 'store',
               arrive: 'wait for the copy'};

function describePhase({tiling, block, place, walk, explained}) {
    const {down, across, along} = describeTiles(tiling, block, place);
    const threads = formatCount(explained.threads_per_block);
    switch (place.phase) {
    case 'load':
        return `The block's ${threads} threads copy rows ${down}, columns ${along} of A and rows ` +
            `${along}, columns ${across} of B into shared memory. What lies outside becomes 0.`;
    case 'arrive':
        return 'Each thread waits for the copies that it started during the step before: rows ' +
            `${down}, columns ${along} of A and rows ${along}, columns ${across} of B.`;
    case 'barrier':
        return walk.isBuffered ?
            'All wait: the tiles are complete, and nobody still reads the other buffer.' :
            place.index === 1 ? 'All wait: nobody may read a tile before it is complete.' :
            'All wait: nobody may overwrite a tile that another thread still reads.';
    case 'multiply':
        return `Each thread adds ${tiling.depth} ${tiling.depth > 1 ? 'products' : 'product'} to ` +
            `each of its sums, for rows ${down} and columns ${across} of D.` +
            (walk.isBuffered && place.loadedSteps > place.step + 1 ?
                ' Meanwhile the next tiles are copied into the other buffer.' : '');
    default:
        return `The sums of rows ${down}, columns ${across} are stored in D.`;
    }
}

function showClock(html, {walk, place}) {
    const names = [...walk.phases, 'store'];
    return html('ol', {class: 'clock', 'aria-label': 'phases of a step'}, names.map((name, i) =>
        html('li', {'aria-current': i === place.index ? 'step' : null}, NAMES[name])));
}

function showCounters(html, app, view) {
    const {tiling, block, place, explained} = view;
    const done = countDone(app, tiling, block, place);
    const one = (label, name, text) => html('div', {}, [
        html('dt', {}, label), html('dd', {'data-count': name}, text)]);
    return html('dl', {class: 'counters'}, [
        one('tile of D', 'block', `row ${block.row}, column ${block.col} of ` +
            `${tiling.downCount} x ${tiling.acrossCount}`),
        one('step along k', 'step', `${place.step + 1} of ${tiling.stepCount}`),
        one('FLOP so far', 'issued', `${formatCount(done.issuedFlops)} of ` +
            formatCount(explained.issued_flops)),
        one('of them useful', 'useful', `${formatCount(done.usefulFlops)} of ` +
            formatCount(explained.useful_flops)),
        one('elements read from A and B', 'loaded', `${formatCount(done.loadedElems)} of ` +
            formatCount(explained.global_read_elems)),
        one('uses of each', 'reuse', formatCount(done.reuse)),
    ]);
}

function listMoves({tiling, block, place, walk, values}) {
    const index = place.isStore ? 2 * tiling.stepCount :
                  2 * place.step + (place.index >= 2 ? 1 : 0);
    const moves = values.isTraced ? values.moves(block, index) : [];
    const name = (space, at) => {
        const cols = space === 'A' ? tiling.k : tiling.n;
        return space === 'S' ? `shared[${at}]` : `${space}(${Math.floor(at / cols)}, ${at % cols})`;
    };
    const columns = ['thread (x, y)', 'does', 'place', 'line'];
    const rows = moves.map(move => [`(${move.thread.join(', ')})`,
        move.is_write ? 'writes' : 'reads', name(move.space, move.index), move.line]);
    if (!walk.hasShared || !rows.length)
        return {columns: ['matrix', 'rows', 'columns'], rows: listTiles(tiling, block, place)};
    return {columns, rows};
}

function listTiles(tiling, block, place) {
    const {down, across, along} = describeTiles(tiling, block, place);
    return [['A', down, along], ['B', along, across], ['D', down, across]];
}

function makeView(app, width) {
    const explained = app.explain();
    if (explained.error)
        return {refusal: explained.error};
    if (!explained.is_legal && explained.family === 'tiled')
        return {refusal: explained.reason};
    const tiling = makeTiling(explained);
    const block = tiling.getBlock(app.state.blockRow, app.state.blockCol);
    const walk = makeWalk(tiling);
    const place = walk.getPlace(app.state.at);
    const scale = makeScale(tiling, width);
    return {explained, tiling, block, walk, place, scale, planes: makePlanes(tiling, scale),
            values: makeValues(app, tiling, explained.kernel)};
}

// Returns the block of D at a place of the drawing, as changes of the state, or null beside D.
function findBlockAt({tiling, planes: {d}}, x, y) {
    const all = d.getBox(0, 0, tiling.m, tiling.n);
    const isInside = x >= all.x && y >= all.y && x < all.x + all.width && y < all.y + all.height;
    return isInside ? {blockRow: Math.floor((y - all.y) / d.perRow / tiling.rows),
                       blockCol: Math.floor((x - all.x) / d.perCol / tiling.cols), at: 0} : null;
}

export default {
    id: 'walk',
    title: 'Tile by tile',
    state: {blockRow: 0, blockCol: 0, at: 0, speed: 2},
    mount(root, app) {
        const {html, svg} = app;
        addPatterns(svg);
        const shown = html('div');
        const picture = app.figure('A, B and D');
        const status = html('p', {class: 'status', role: 'status'});
        const measure = () => app.measureWidth(root, 760);
        let view = makeView(app, measure());
        const player = makePlayer(app, () => view);
        root.append(
            html('div', {class: 'controls', role: 'group', 'aria-label': 'examples'},
                PRESETS.map(preset => app.button(preset.label, () => app.set(
                    {...preset.state, blockRow: 0, blockCol: 0, at: 0})))),
            player.node, status, shown);

        const draw = () => {
            view = makeView(app, measure());
            player.show();
            if (view.refusal) {
                status.textContent = '';
                shown.replaceChildren(html('p', {class: 'warn'}, view.refusal),
                    app.button('Take the kernel edges', () => app.set({kernel: 'edges'})));
                return;
            }
            const {explained, tiling, block, place, values} = view;
            // The status is not announced during play: a screen reader would read without end.
            status.setAttribute('aria-live', player.isPlaying() ? 'off' : 'polite');
            status.textContent = `${NAMES[place.phase]}: ${describePhase(view)}`;
            const label = `tile of D at row ${block.row}, column ${block.col}, step ` +
                `${place.step + 1} of ${tiling.stepCount}`;
            const drawing = drawWalk(svg, view, label);
            listenToClicks(drawing, (x, y) => app.set(findBlockAt(view, x, y) ?? {}));
            const table = listMoves(view);
            picture.show(makeScroll(html, drawing), table.columns, table.rows,
                         `A, B and D: ${label}`);
            const registers = html('div', {}, [
                html('h2', {}, 'Registers'), showSums(html, view), showTerms(html, view)]);
            const isWide = tiling.cols > 8;
            shown.replaceChildren(
                explained.is_legal ? '' : html('p', {class: 'warn'}, explained.reason),
                showClock(html, view), showCounters(html, app, view),
                html('div', {class: 'walk'}, [
                    picture.node,
                    html('div', {class: 'held'}, [
                        html('h2', {}, 'Shared memory'),
                        html('div', {class: place.phase === 'load' ? 'filling' : null},
                             showShared(html, view)),
                        isWide ? null : registers]),
                ]),
                isWide ? registers : '',
                describeSource(html, app, view),
                html('p', {class: 'hint'}, [
                    'A is 0, 1, 2, ... by rows, B 100, 101, .... ', values.isTraced ?
                    'Sums and moves are those of the simulator, which ran this very kernel. ' :
                    values.hasSums ? 'The page forms the sums, in FP32 and in the order of k. ' :
                    'The page forms no sums over so long a k. ',
                    'The counts are the model\'s. A GPU works on many blocks at once; here one ' +
                    'follows the other.']));
        };
        app.on('change', draw);
        draw();
    },
};
