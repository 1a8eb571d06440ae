// This module draws A, B and D as rectangles, B above D and A to its left, with the tiles at hand.
// Lengths are in the drawing's units. The part of a tile outside its matrix is drawn too, hatched.
import {formatRange} from '../facts/tiling.js';
import {formatValue} from './walk_values.js';

const GAP = 34;
const TOP = 20; // room for a title
const CELL_MOST = 40;
const CELL_LEAST = 22; // numbers cannot be read in smaller cells, so no cells are drawn
const PICTURE = 760;
const AXIS_MOST = 240;
const CELLS_SIDE_MOST = 16; // elements side by side that keep their numbers on a narrow screen
const AXIS_LEAST = 44;
const TILE_LEAST = 7; // pixels: smaller tiles are drawn so large, to be seen

// Returns the pixels of an element along m, n and k in a picture of at most `width`. Small products
// have cells. In others the length of each axis tells which is longer, without one of them
// vanishing. Cells that are legible do not shrink further: a narrow screen scrolls up to
// CELLS_SIDE_MOST of them.
export function makeScale(tiling, width) {
    const padded = {m: tiling.downCount * tiling.rows, n: tiling.acrossCount * tiling.cols,
                    k: tiling.stepCount * tiling.depth};
    const across = padded.k + padded.n;
    const room = Math.min(PICTURE, width) - GAP - 8;
    const fitted = Math.min(CELL_MOST, Math.floor(room / across),
                            Math.floor(PICTURE / (padded.k + padded.m)));
    const cell = across <= CELLS_SIDE_MOST ? Math.max(fitted, CELL_LEAST) : fitted;
    if (cell >= CELL_LEAST)
        return {hasCells: true, m: cell, n: cell, k: cell, padded};
    const longest = Math.max(padded.m, padded.n, padded.k);
    const most = Math.min(AXIS_MOST, room / 2);
    const scale = size => Math.max(AXIS_LEAST, most * size / longest) / size;
    return {hasCells: false, m: scale(padded.m), n: scale(padded.n), k: scale(padded.k), padded};
}

// Makes a matrix at its place, which maps rows and columns to the drawing.
function makePlane(x, y, rowCount, colCount, perRow, perCol) {
    return {
        rowCount, colCount, perRow, perCol,
        getBox: (row, col, rows, cols) => ({x: x + col * perCol, y: y + row * perRow,
                                            width: cols * perCol, height: rows * perRow}),
    };
}

export function makePlanes(tiling, scale) {
    const left = scale.padded.k * scale.k + GAP;
    const top = TOP + scale.padded.k * scale.k + GAP;
    return {
        a: makePlane(0, top, tiling.m, tiling.k, scale.m, scale.k),
        b: makePlane(left, TOP, tiling.k, tiling.n, scale.k, scale.n),
        d: makePlane(left, top, tiling.m, tiling.n, scale.m, scale.n),
        width: left + scale.padded.n * scale.n + 2,
        height: top + scale.padded.m * scale.m + 2,
    };
}

// Draws all lines of a grid as one path, because an element for each would be thousands.
function drawGrid(svg, plane, rowStep, colStep) {
    const all = plane.getBox(0, 0, plane.rowCount, plane.colCount);
    let path = '';
    if (rowStep * plane.perRow >= 4) {
        for (let row = rowStep; row < plane.rowCount; row += rowStep)
            path += `M${all.x} ${all.y + row * plane.perRow}h${all.width}`;
    }
    if (colStep * plane.perCol >= 4) {
        for (let col = colStep; col < plane.colCount; col += colStep)
            path += `M${all.x + col * plane.perCol} ${all.y}v${all.height}`;
    }
    return path ? svg('path', {d: path, class: 'grid'}) : null;
}

function drawCells(svg, plane, getText) {
    const cells = [];
    for (let row = 0; row < plane.rowCount; row++) {
        for (let col = 0; col < plane.colCount; col++) {
            const text = getText(row, col);
            const box = plane.getBox(row, col, 1, 1);
            const size = Math.min(13, 1.45 * box.width / Math.max(text.length, 2));
            cells.push(svg('text', {x: box.x + box.width / 2, y: box.y + box.height / 2,
                                    class: 'cell', style: `font-size: ${size}px`}, text));
        }
    }
    return cells;
}

// Draws the part of a tile's box that no matrix fills: below it, and to its right.
function drawOutside(svg, plane, row, col, rows, cols) {
    const inRows = Math.max(0, Math.min(rows, plane.rowCount - row));
    const inCols = Math.max(0, Math.min(cols, plane.colCount - col));
    const parts = [[row + inRows, col, rows - inRows, cols],
                   [row, col + inCols, inRows, cols - inCols]];
    return parts.filter(part => part[2] > 0 && part[3] > 0).map(
        part => svg('rect', {...plane.getBox(...part), class: 'outside'}));
}

// Widens a tile's box to a size that can be seen, about the same middle and within its matrix.
function widen(box, all) {
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

function drawTile(svg, plane, kind, row, col, rows, cols) {
    const all = plane.getBox(0, 0, plane.rowCount, plane.colCount);
    const box = widen(plane.getBox(row, col, rows, cols), all);
    return [svg('rect', {...box, class: `tile tile-${kind}`}),
            drawOutside(svg, plane, row, col, rows, cols)];
}

function drawMatrix(svg, plane, name, sizes, steps) {
    const all = plane.getBox(0, 0, plane.rowCount, plane.colCount);
    return [svg('text', {x: all.x, y: all.y - 7, class: 'name'}, [name, ` ${sizes}`]),
            drawGrid(svg, plane, ...steps),
            svg('rect', {...all, class: 'matrix'})];
}

// Draws the blocks of D that are done: whole rows of blocks, and those of this row.
function drawDone(svg, plane, block, isStored) {
    const colCount = block.firstCol + (isStored ? block.colCount : 0);
    return [[0, 0, block.firstRow, plane.colCount], [block.firstRow, 0, block.rowCount, colCount]]
        .filter(part => part[2] > 0 && part[3] > 0)
        .map(part => svg('rect', {...plane.getBox(...part), class: 'done'}));
}

// Draws what is done, and the bands in which the tiles at hand move.
function drawGround(svg, {tiling, block, place, planes: {a, b, d}}) {
    const done = Math.min(place.step * tiling.depth, tiling.k);
    const rect = (box, kind) => svg('rect', {...box, class: kind});
    return [rect(a.getBox(block.firstRow, 0, block.rowCount, done), 'done'),
            rect(b.getBox(0, block.firstCol, done, block.colCount), 'done'),
            drawDone(svg, d, block, place.isStore),
            rect(d.getBox(0, 0, tiling.m, tiling.n), 'hit'),
            rect(a.getBox(block.firstRow, 0, block.rowCount, tiling.k), 'band'),
            rect(b.getBox(0, block.firstCol, tiling.k, block.colCount), 'band')];
}

function drawMatrices(svg, {tiling, scale, planes}) {
    const {m, n, k, rows, cols, depth} = tiling;
    const steps = (...tile) => scale.hasCells ? [1, 1] : tile;
    return [drawMatrix(svg, planes.a, 'A', `${m} x ${k}`, steps(rows, depth)),
            drawMatrix(svg, planes.b, 'B', `${k} x ${n}`, steps(depth, cols)),
            drawMatrix(svg, planes.d, 'D', `${m} x ${n}`, steps(rows, cols))];
}

function drawTiles(svg, {tiling, block, place, walk, planes}) {
    const {rows, cols, depth} = tiling;
    const pair = (step, ...kinds) => [
        drawTile(svg, planes.a, kinds[0], block.firstRow, step * depth, rows, depth),
        drawTile(svg, planes.b, kinds[1], step * depth, block.firstCol, depth, cols)];
    const isAhead = walk.isBuffered && place.loadedSteps > place.step + 1;
    return [place.isStore ? [] : pair(place.step, 'a', 'b'),
            isAhead ? pair(place.step + 1, 'next', 'next') : [],
            drawTile(svg, planes.d, 'd', block.firstRow, block.firstCol, rows, cols)];
}

function drawValues(svg, {block, place, scale, planes, values}) {
    if (!scale.hasCells)
        return [];
    return [drawCells(svg, planes.a, (row, p) => formatValue(values.a(row, p))),
            drawCells(svg, planes.b, (p, col) => formatValue(values.b(p, col))),
            values.hasSums ? drawCells(svg, planes.d, values.getShown(block, place)) : []];
}

// Draws a view {tiling, block, place, walk, values, scale, planes}.
export function drawWalk(svg, view, label) {
    const {width, height} = view.planes;
    const nodes = [drawGround, drawMatrices, drawTiles, drawValues].map(draw => draw(svg, view));
    return svg('svg', {
        viewBox: `-2 0 ${width + 4} ${height + 4}`, role: 'img', 'aria-label': label,
        width: Math.round(width), style: `min-width: ${Math.round(width)}px`,
        class: view.scale.hasCells ? 'walk-picture' : 'walk-picture small',
    }, nodes);
}

// Describes the places of D and k in words, for the caption and for who cannot see the drawing.
export function describeTiles(tiling, block, place) {
    const step = tiling.getStep(place.step);
    const down = formatRange(block.firstRow, block.rowCount);
    const across = formatRange(block.firstCol, block.colCount);
    const along = formatRange(step.first, step.count);
    return {down, across, along};
}
