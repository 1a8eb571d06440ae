// This module draws a walk at its scales: the matrices in global memory, and the tiles of the block
// at hand in shared memory and registers. The part of a tile outside its matrix is drawn too,
// hatched.
import {traceRuns} from '../pictures/owners_picture.js';
import {drawMotion} from './walk_motion.js';
import {fitValue, formatValue, TEXT_LEAST} from './walk_values.js';

const TILE_LEAST = 9; // pixels: smaller tiles are drawn so large, to be seen
const NAME_LEAST = 60; // pixels: narrower tiles have no room for their sizes above them
const GRID_LEAST = 4.5; // pixels between lines

const rect = (svg, box, kind) => svg('rect', {...box, class: kind});

// Returns the stride of a grid: the tile's, or a multiple of it where lines would touch.
const widenStride = (stride, pixels) => stride * 2 ** Math.max(0, Math.ceil(
    Math.log2(GRID_LEAST / (stride * pixels))));

// Draws all lines of a grid as one path, because an element for each would be thousands.
function drawGrid(svg, plane, rowStride, colStride) {
    const all = plane.getBox(0, 0, plane.rowCount, plane.colCount);
    const down = widenStride(rowStride, plane.perRow);
    const across = widenStride(colStride, plane.perCol);
    let path = '';
    for (let row = down; row < plane.rowCount; row += down)
        path += `M${all.x} ${all.y + row * plane.perRow}h${all.width}`;
    for (let col = across; col < plane.colCount; col += across)
        path += `M${all.x + col * plane.perCol} ${all.y}v${all.height}`;
    return path ? svg('path', {d: path, class: 'grid'}) : null;
}

// Writes a number into a box; the whole number stands in its title if it does not fit.
export function drawNumber(svg, box, value, kind = '') {
    const text = fitValue(value, box.width);
    const size = Math.min(14, Math.max(TEXT_LEAST, 1.5 * box.width / Math.max(text.length, 2)));
    return svg('text', {x: box.x + box.width / 2, y: box.y + box.height / 2,
                        class: `cell ${kind}`, style: `font-size: ${size}px`},
               [text, text === formatValue(value) ? null : svg('title', {}, formatValue(value))]);
}

function drawNumbers(svg, plane, getValue) {
    const cells = [];
    for (let row = 0; row < plane.rowCount; row++) {
        for (let col = 0; col < plane.colCount; col++) {
            const value = getValue(row, col);
            if (value !== null && value !== undefined)
                cells.push(drawNumber(svg, plane.getBox(row, col, 1, 1), value,
                                      value === 0 ? 'nought' : ''));
        }
    }
    return cells;
}

// Draws the part of a tile's box that no matrix fills: below it, and to its right.
function drawOutside(svg, plane, row, col, rows, cols, rowCount, colCount) {
    const inRows = Math.max(0, Math.min(rows, rowCount - row));
    const inCols = Math.max(0, Math.min(cols, colCount - col));
    const parts = [[row + inRows, col, rows - inRows, cols],
                   [row, col + inCols, inRows, cols - inCols]];
    return parts.filter(part => part[2] > 0 && part[3] > 0)
        .map(part => rect(svg, plane.getBox(...part), 'outside'));
}

// Widens a tile's box to a size that can be seen, about the same middle and within its matrix.
export function findTileBox(plane, row, col, rows, cols) {
    const all = plane.getBox(0, 0, plane.rowCount, plane.colCount);
    const box = plane.getBox(row, col, rows, cols);
    const stretch = (start, length, from, most) => {
        const shown = Math.max(length, Math.min(TILE_LEAST, most));
        const place = start - (shown - length) / 2;
        return [shown > length ? Math.max(from, Math.min(place, from + most - shown)) : start,
                shown];
    };
    const [x, width] = stretch(box.x, box.width, all.x, all.width);
    const [y, height] = stretch(box.y, box.height, all.y, all.height);
    return {x, y, width, height};
}

const drawTile = (svg, plane, kind, ...place) => [
    rect(svg, findTileBox(plane, ...place), `tile tile-${kind}`),
    drawOutside(svg, plane, ...place, plane.rowCount, plane.colCount)];

function drawMatrix(svg, plane, name, sizes, strides) {
    const all = plane.getBox(0, 0, plane.rowCount, plane.colCount);
    return [svg('text', {x: all.x, y: all.y - 6, class: 'name'}, `${name} ${sizes}`),
            drawGrid(svg, plane, ...strides), rect(svg, all, 'matrix')];
}

// Draws what is done, and the bands in which the tiles at hand move.
function drawGround(svg, {tiling, block, place, layout: {matrices: {a, b, d}}}) {
    const done = Math.min(place.step * tiling.depth, tiling.k);
    const stored = block.firstCol + (place.isStore ? block.colCount : 0);
    const all = plane => plane.getBox(0, 0, plane.rowCount, plane.colCount);
    const parts = [
        [all(a), 'ground-a'], [all(b), 'ground-b'], [all(d), 'ground-d'],
        [a.getBox(block.firstRow, 0, block.rowCount, tiling.k), 'band band-a'],
        [b.getBox(0, block.firstCol, tiling.k, block.colCount), 'band band-b'],
        [a.getBox(block.firstRow, 0, block.rowCount, done), 'done done-a'],
        [b.getBox(0, block.firstCol, done, block.colCount), 'done done-b'],
        [d.getBox(0, 0, block.firstRow, d.colCount), 'done done-d'],
        [d.getBox(block.firstRow, 0, block.rowCount, stored), 'done done-d'],
        [all(d), 'hit']];
    return parts.filter(([box]) => box.width > 0 && box.height > 0)
        .map(([box, kind]) => rect(svg, box, kind));
}

function drawMatrices(svg, {tiling, block, place, walk, values, layout: {matrices}}) {
    const {m, n, k, rows, cols, depth} = tiling;
    const {a, b, d, hasNumbers} = matrices;
    const strides = (...tile) => hasNumbers ? [1, 1] : tile;
    const isAhead = walk.isBuffered && place.loadedSteps > place.step + 1;
    const pair = (step, ...kinds) => [
        drawTile(svg, a, kinds[0], block.firstRow, step * depth, rows, depth),
        drawTile(svg, b, kinds[1], step * depth, block.firstCol, depth, cols)];
    return [
        drawMatrix(svg, a, 'A', `${m} x ${k}`, strides(rows, depth)),
        drawMatrix(svg, b, 'B', `${k} x ${n}`, strides(depth, cols)),
        drawMatrix(svg, d, 'D', `${m} x ${n}`, strides(rows, cols)),
        place.isStore ? null : pair(place.step, 'a', 'b'),
        isAhead ? pair(place.step + 1, 'next', 'next') : null,
        drawTile(svg, d, 'd', block.firstRow, block.firstCol, rows, cols),
        hasNumbers ? [drawNumbers(svg, a, values.a), drawNumbers(svg, b, values.b),
                      values.hasSums ? drawNumbers(svg, d, values.getStored(block, place)) : null]
                   : null];
}

// Marks the row of A, the column of B and the sums of the thread that was chosen.
function drawThread(svg, {layout: {tiles: {a, b, d}}, owners, thread, tiling}) {
    const rows = new Set();
    const cols = new Set();
    owners.forEach((line, row) => line.forEach((owner, col) => {
        if (owner === thread) {
            rows.add(row);
            cols.add(col);
        }
    }));
    const box = d.getBox(0, 0, tiling.rows, tiling.cols);
    return [
        [...rows].map(row => rect(svg, a.getBox(row, 0, 1, tiling.depth), 'need-of a')),
        [...cols].map(col => rect(svg, b.getBox(0, col, tiling.depth, 1), 'need-of b')),
        svg('path', {d: traceRuns(owners, d.perRow, owner => owner === thread), class: 'own',
                     transform: `translate(${box.x} ${box.y})`})];
}

function drawTileNames(svg, {tiling, walk, layout: {tiles: {a, b, d}}, names}) {
    const {rows, cols, depth} = tiling;
    const name = (plane, text, sizes = '') => {
        const {x, y, width} = plane.getBox(0, 0, 1, plane.colCount);
        return svg('text', {x, y: y - 6, class: 'name'},
                   width < NAME_LEAST ? text : text + sizes);
    };
    const kind = walk.hasShared ? '' : ', no copy';
    return [name(a, 'A', ` ${rows} x ${depth}${kind}`), name(b, 'B', ` ${depth} x ${cols}${kind}`),
            name(d, names.sums)];
}

function drawTiles(svg, view) {
    const {tiling, block, place, walk, values, layout: {tiles: {a, b, d, hasNumbers}}} = view;
    const {rows, cols, depth} = tiling;
    const step = tiling.getStep(place.step);
    const held = walk.hasShared ? '' : ' no-copy';
    const all = (plane, kind) => rect(svg, plane.getBox(0, 0, plane.rowCount, plane.colCount),
                                      kind);
    const sums = values.hasSums ? values.sums(block, place.multipliedSteps) : () => null;
    const valueOf = {
        a: (row, p) => block.firstRow + row < tiling.m && p < step.count
            ? values.a(block.firstRow + row, step.first + p) : 0,
        b: (p, col) => p < step.count && block.firstCol + col < tiling.n
            ? values.b(step.first + p, block.firstCol + col) : 0,
        d: (row, col) => row < block.rowCount && col < block.colCount && place.multipliedSteps
            ? sums(block.firstRow + row, block.firstCol + col) : null};
    const outside = (plane, rowCount, colCount) =>
        drawOutside(svg, plane, 0, 0, plane.rowCount, plane.colCount, rowCount, colCount);
    return [
        all(a, `held tile-a${held}`), all(b, `held tile-b${held}`), all(d, 'held tile-d'),
        outside(a, block.rowCount, step.count), outside(b, step.count, block.colCount),
        outside(d, block.rowCount, block.colCount),
        svg('rect', {...d.getBox(0, 0, block.rowCount, block.colCount), class: 'progress',
                     style: `fill-opacity: ${0.3 * place.multipliedSteps / tiling.stepCount}`}),
        drawGrid(svg, a, 1, 1), drawGrid(svg, b, 1, 1), drawGrid(svg, d, 1, 1),
        drawTileNames(svg, view),
        drawThread(svg, view),
        hasNumbers ? [drawNumbers(svg, a, valueOf.a), drawNumbers(svg, b, valueOf.b),
                      drawNumbers(svg, d, valueOf.d)] : null,
        svg('rect', {...d.getBox(0, 0, rows, cols), class: 'hit hit-thread'})];
}

// Draws the panels and, from the tile in D to its panel, the rays of a lens.
function drawPanels(svg, {tiling, block, layout, names}) {
    const [first, second] = layout.panels;
    const from = findTileBox(layout.matrices.d, block.firstRow, block.firstCol, tiling.rows,
                             tiling.cols);
    const top = Math.max(...[layout.matrices.d, layout.tiles.d].map(
        plane => plane.getBox(0, 0, 1, 1).y));
    const rays = layout.isWide
        ? `M${from.x + from.width} ${from.y}L${second.x} ${top}` +
          `M${from.x + from.width} ${from.y + from.height}L${second.x} ` +
          `${second.y + second.height - 8}`
        : `M${from.x} ${from.y + from.height}L8 ${second.y}` +
          `M${from.x + from.width} ${from.y + from.height}L${second.width - 8} ${second.y}`;
    const panel = (box, kind, text) => [
        svg('rect', {...box, rx: 8, class: `panel ${kind}`}),
        svg('text', {x: box.x + 12, y: box.y + 20, class: 'place'}, text)];
    return [panel(first, 'global', names.global), panel(second, 'on-chip', names.shared),
            svg('path', {d: rays, class: 'rays'})];
}

// Draws a view {tiling, block, place, walk, values, layout, owners, thread, names}.
export function drawWalk(svg, view, label) {
    const {width, height} = view.layout;
    const nodes = [drawPanels, drawGround, drawMatrices, drawTiles, drawMotion]
        .map(draw => draw(svg, view)).flat(Infinity);
    return svg('svg', {
        viewBox: `-1 -1 ${width + 2} ${height + 2}`, role: 'img', 'aria-label': label,
        width: Math.round(width) + 2, class: 'walk-picture',
    }, nodes);
}

