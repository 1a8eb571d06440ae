// This module places what a walk shows: the matrices in global memory, and the tiles of one block
// in shared memory and registers. Each group stands like a product on paper: B above D, A to its
// left. Lengths are in the drawing's units, which are pixels until the screen is narrower.

const GAP = 30;      // between A and D, and between B and D
const TITLE = 18;    // room for the name above a matrix
const PADDING = 12;  // within a panel
const HEADING = 26;  // room for the heading of a panel
const BETWEEN = 14;  // between the panels
const WIDE_LEAST = 620; // a narrower drawing has the panels below each other
const CELL_MOST = 40;
const TILE_CELL_MOST = 58;
const AXIS_LEAST = 56;
export const NUMBER_CELL = 30; // numbers of 11 pixels do not fit into smaller cells

// Makes a matrix at its place, which maps rows and columns to the drawing.
function makePlane(x, y, rowCount, colCount, perRow, perCol) {
    return {
        rowCount, colCount, perRow, perCol,
        getBox: (row, col, rows, cols) => ({x: x + col * perCol, y: y + row * perRow,
                                            width: cols * perCol, height: rows * perRow}),
    };
}

// Places A, B and D, `scale` pixels an element along m, n and k. `shown` has the elements that are
// drawn, `room` those that there is room for: a tile may reach beyond its matrix.
function placeProduct(x, y, shown, room, scale) {
    const left = x + room.k * scale.k + GAP;
    const top = y + TITLE + room.k * scale.k + GAP;
    return {
        a: makePlane(x, top, shown.m, shown.k, scale.m, scale.k),
        b: makePlane(left, y + TITLE, shown.k, shown.n, scale.k, scale.n),
        d: makePlane(left, top, shown.m, shown.n, scale.m, scale.n),
        hasNumbers: Math.min(scale.m, scale.n, scale.k) >= NUMBER_CELL,
        width: room.k * scale.k + GAP + room.n * scale.n,
        height: TITLE + room.k * scale.k + GAP + room.m * scale.m,
    };
}

const fitCell = ({m, n, k}, width, height, most) => Math.min(most, (width - GAP) / (k + n),
                                                             (height - GAP - TITLE) / (k + m));

// Returns the pixels of an element along m, n and k. Small products have cells for numbers. In
// others the length of an axis tells which is longer, without one of them vanishing.
function scaleMatrices(room, width, height) {
    const cell = Math.floor(fitCell(room, width, height, CELL_MOST));
    if (cell >= NUMBER_CELL)
        return {m: cell, n: cell, k: cell};
    const most = fitCell(room, width, height, CELL_MOST);
    const scale = size => Math.max(AXIS_LEAST, most * size) / size;
    return {m: scale(room.m), n: scale(room.n), k: scale(room.k)};
}

// Moves a product to the middle of the width that it stands in.
function placeInMiddle(x, y, width, shown, room, scale) {
    const {width: taken} = placeProduct(x, y, shown, room, scale);
    return placeProduct(x + Math.max(0, (width - taken) / 2), y, shown, room, scale);
}

// Returns {matrices, tiles, panels, width, height} for a drawing of some width and at most about
// some height.
export function makeLayout(tiling, width, height) {
    const isWide = width >= WIDE_LEAST;
    const inner = (isWide ? (width - BETWEEN) / 2 : width) - 2 * PADDING;
    const innerHeight = height - HEADING - 2 * PADDING;
    const sizes = {m: tiling.m, n: tiling.n, k: tiling.k};
    const padded = {m: tiling.downCount * tiling.rows, n: tiling.acrossCount * tiling.cols,
                    k: tiling.stepCount * tiling.depth};
    const tile = {m: tiling.rows, n: tiling.cols, k: tiling.depth};
    const cell = fitCell(tile, inner, innerHeight, TILE_CELL_MOST);
    const tileScale = cell >= 4 ? Math.floor(cell) : cell;
    const matrices = placeInMiddle(PADDING, HEADING + PADDING, inner, sizes, padded,
                                   scaleMatrices(padded, inner, innerHeight));
    const firstHeight = HEADING + 2 * PADDING + matrices.height;
    const left = isWide ? inner + 2 * PADDING + BETWEEN : 0;
    const top = isWide ? 0 : firstHeight + BETWEEN;
    const tiles = placeInMiddle(left + PADDING, top + HEADING + PADDING, inner, tile, tile,
                                {m: tileScale, n: tileScale, k: tileScale});
    const secondHeight = HEADING + 2 * PADDING + tiles.height;
    const both = Math.max(firstHeight, secondHeight);
    const panelWidth = inner + 2 * PADDING;
    return {
        matrices, tiles, isWide, width,
        height: isWide ? both : top + secondHeight,
        panels: [{x: 0, y: 0, width: panelWidth, height: isWide ? both : firstHeight},
                 {x: left, y: top, width: panelWidth, height: isWide ? both : secondHeight}],
    };
}
