// This view shows who computes what: a tile of D, its threads and warps, and the elements of each.
import {formatCount} from '../parts/format.js';
import {listenToArrows, listenToClicks} from '../parts/drawing.js';
import {drawOwners, drawTiles, getTileCell, makeGridScale} from '../pictures/owners_picture.js';
import {makeRange} from '../parts/range.js';
import {formatRange, makeTileFields, makeTiling} from '../facts/tiling.js';

const WARP_THREADS = 32;
const SIDE_MOST = 560; // pixels of the tile
const MARKS = 20;      // pixels beside it

// Returns the elements of a thread within the tile, row by row, and the rows and columns that they
// lie in.
function findOwned(owners, thread) {
    const elements = owners.flatMap((threads, row) => threads.flatMap(
        (other, col) => other === thread ? [{row, col}] : []));
    return {elements, rows: new Set(elements.map(one => one.row)),
            cols: new Set(elements.map(one => one.col))};
}

// Writes 0, 1, 2, 16, 17 as "0 .. 2, 16 .. 17".
export function formatSet(numbers) {
    const sorted = [...numbers].sort((left, right) => left - right);
    const runs = [];
    for (const number of sorted) {
        const last = runs[runs.length - 1];
        if (last && last[0] + last[1] === number)
            last[1]++;
        else
            runs.push([number, 1]);
    }
    return runs.map(([first, count]) => formatRange(first, count)).join(', ');
}

const shift = (numbers, by, limit) => [...numbers].map(one => one + by).filter(one => one < limit);

function listWarps(owners) {
    const warps = new Map();
    owners.forEach((threads, row) => threads.forEach((thread, col) => {
        const warp = Math.floor(thread / WARP_THREADS);
        if (!warps.has(warp))
            warps.set(warp, {rows: new Set(), cols: new Set()});
        warps.get(warp).rows.add(row);
        warps.get(warp).cols.add(col);
    }));
    return [...warps].sort(([left], [right]) => left - right).map(([warp, {rows, cols}]) => [
        warp, formatRange(warp * WARP_THREADS, WARP_THREADS), formatSet(rows), formatSet(cols)]);
}

function showFacts(html, {explained, tiling, block, owned, thread, threads}) {
    const fact = (label, name, text) => html('div', {}, [
        html('dt', {}, label), html('dd', {'data-fact': name}, text)]);
    const col = thread % threads.threads_x;
    const row = Math.floor(thread / threads.threads_x);
    const rows = shift(owned.rows, block.firstRow, tiling.m);
    const cols = shift(owned.cols, block.firstCol, tiling.n);
    const stored = owned.elements.filter(
        one => one.row < block.rowCount && one.col < block.colCount).length;
    return html('dl', {class: 'counters'}, [
        fact('tile of D', 'tile', `rows ${formatRange(block.firstRow, block.rowCount)}, columns ` +
            formatRange(block.firstCol, block.colCount)),
        fact('tiles of D in all', 'tiles', `${formatCount(tiling.downCount)} x ` +
            `${formatCount(tiling.acrossCount)} = ${formatCount(tiling.blockCount)}`),
        fact('threads of a block', 'threads', `${threads.threads_y} x ${threads.threads_x} ` +
            `= ${formatCount(explained.threads_per_block)}, ` +
            `${formatCount(Math.ceil(explained.threads_per_block / WARP_THREADS))} warps`),
        fact('registers a thread', 'registers', formatCount(explained.registers_per_thread)),
        fact('thread (row, column)', 'thread', `${thread} = (${row}, ${col}), lane ` +
            `${thread % WARP_THREADS} of warp ${Math.floor(thread / WARP_THREADS)}`),
        fact('its elements', 'elements', `${owned.elements.length}, ${stored} of them inside D`),
        fact('its rows of A and D', 'rows', formatSet(rows) || 'none inside'),
        fact('its columns of B and D', 'cols', formatSet(cols) || 'none inside'),
    ]);
}

function makeGridDrawing(app, tiling, block, label) {
    const drawing = drawTiles(app.svg, tiling, block, label);
    const choose = (row, col) => {
        const next = tiling.getBlock(row, col);
        app.set({blockRow: next.row, blockCol: next.col});
    };
    const {width, height} = makeGridScale(tiling);
    listenToClicks(drawing, (x, y) => choose(Math.floor(y / height * tiling.downCount),
                                             Math.floor(x / width * tiling.acrossCount)));
    listenToArrows(drawing, (down, across) => choose(block.row + down, block.col + across));
    return drawing;
}

function makeTileDrawing(app, {owners, thread, owned, block}, cursor, label, side) {
    const drawing = drawOwners(app.svg, owners, thread, owned, block, label, side);
    const choose = (row, col) => {
        cursor.row = Math.min(Math.max(0, row), owners.length - 1);
        cursor.col = Math.min(Math.max(0, col), owners[0].length - 1);
        app.set({thread: owners[cursor.row][cursor.col]});
    };
    const cell = getTileCell(owners, side);
    listenToClicks(drawing, (x, y) => choose(Math.floor(y / cell), Math.floor(x / cell)));
    listenToArrows(drawing, (down, across) => {
        // The cursor starts at an element of the thread, whichever control chose the thread.
        if (owners[cursor.row]?.[cursor.col] !== thread)
            Object.assign(cursor, owned.elements[0]);
        choose(cursor.row + down, cursor.col + across);
    });
    return drawing;
}

export default {
    id: 'owners',
    title: 'Who computes what',
    state: {blockRow: 0, blockCol: 0, thread: 0},
    mount(root, app) {
        const {html} = app;
        const cursor = {row: 0, col: 0};
        const tiles = app.figure('Tiles of D');
        const elements = app.figure('Elements of the tile');
        const warps = html('div');
        const facts = html('div', {'aria-live': 'polite'});
        let threadCount = 1;
        const thread = makeRange(app, {key: 'thread', label: 'thread',
                                       getHigh: () => threadCount - 1});
        const shown = html('div', {}, [
            html('div', {class: 'controls'}, [
                ...makeTileFields(app), thread.node]),
            facts, html('div', {class: 'walk'}, [tiles.node, elements.node]), warps]);
        const missing = html('div');
        root.append(missing, shown);

        const draw = () => {
            const explained = app.explain();
            shown.hidden = Boolean(explained.error);
            missing.replaceChildren(...explained.error
                ? [html('p', {class: 'warn'}, explained.error)]
                : explained.is_legal ? []
                : [html('p', {class: 'warn'}, `${explained.kernel} cannot run: ` +
                        `${explained.reason}. This is who would compute what.`)]);
            if (explained.error)
                return;
            const tiling = makeTiling(explained);
            const block = tiling.getBlock(app.state.blockRow, app.state.blockCol);
            threadCount = explained.threads_per_block;
            thread.show();
            const threads = app.model.findOwners(app.state);
            const {owners} = threads;
            const view = {explained, tiling, block, threads, owners, thread: thread.get(),
                          owned: findOwned(owners, thread.get())};
            facts.replaceChildren(showFacts(html, view));
            // Drawing again replaces the element, so the focus must be given back.
            const focus = document.activeElement?.classList;
            const name = ['tile-grid', 'owners'].find(one => focus?.contains(one));
            const gridLabel = `${tiling.downCount} x ${tiling.acrossCount} tiles; chosen: row ` +
                `${block.row}, column ${block.col}; arrow keys choose another`;
            tiles.show(makeGridDrawing(app, tiling, block, gridLabel),
                ['tiles of D', 'count'], [
                    ['rows of tiles', tiling.downCount], ['columns of tiles', tiling.acrossCount],
                    ['all', explained.block_count], ['cut by an edge', explained.edge_block_count]],
                `Tiles of D: ${tiling.downCount} x ${tiling.acrossCount} of ${tiling.rows} x ` +
                `${tiling.cols}`);
            elements.show(makeTileDrawing(app, view, cursor,
                    `the tile's elements; thread ${view.thread} owns rows ` +
                    `${formatSet(view.owned.rows)}, columns ${formatSet(view.owned.cols)}; arrow ` +
                    'keys move to the owner beside', app.measureWidth(root, SIDE_MOST) - MARKS),
                ['row in the tile', 'column in the tile', 'row of D', 'column of D', 'stored'],
                view.owned.elements.map(one => [one.row, one.col, block.firstRow + one.row,
                    block.firstCol + one.col,
                    one.row < block.rowCount && one.col < block.colCount ? 'yes' : 'outside']),
                `Elements of the tile: thread ${view.thread} solid, its warp striped, every ` +
                'warp shaded, lines between warps');
            warps.replaceChildren(
                html('details', {}, [html('summary', {}, 'Every warp'),
                    app.table(['warp', 'threads', 'rows in the tile', 'columns in the tile'],
                              listWarps(owners))]),
                html('p', {class: 'hint'}, `Owners are the threads of ${explained.kernel} that ` +
                    'store each element, by the model. Marks beside the tile: the thread\'s rows ' +
                    'of A, at the left, and columns of B, above.' + (explained.is_in_table ? '' :
                    ' The kernel table has no row with this tile: its registers are those of the ' +
                    'next smaller one.')));
            if (name)
                root.querySelector(`.${name}`).focus({preventScroll: true});
        };
        app.on('change', draw);
        draw();
    },
};
