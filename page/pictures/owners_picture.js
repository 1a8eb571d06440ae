// This module draws D as tiles, and a tile as the elements of its threads.
const GRID_SIDE = 260;
const MARGIN = 14; // room for the marks of rows of A and columns of B
const EDGE_LEAST = 7;  // the least side of a cell with strong lines around its warp
const TEXT_LEAST = 26; // the least side of a cell that holds a number

// Keeps the tiles of D square if they are large enough to be told apart.
export function makeGridScale({downCount, acrossCount}) {
    const side = Math.min(32, Math.max(GRID_SIDE / Math.max(downCount, acrossCount), 4));
    return {width: Math.min(GRID_SIDE, side * acrossCount),
            height: Math.min(GRID_SIDE, side * downCount)};
}

export function drawTiles(svg, tiling, block, label) {
    const {width, height} = makeGridScale(tiling);
    const across = width / tiling.acrossCount;
    const down = height / tiling.downCount;
    let lines = '';
    for (let row = 1; row < tiling.downCount && down >= 5; row++)
        lines += `M0 ${row * down}h${width}`;
    for (let col = 1; col < tiling.acrossCount && across >= 5; col++)
        lines += `M${col * across} 0v${height}`;
    return svg('svg', {viewBox: `-4 -4 ${width + 8} ${height + 8}`, width: width + 8, tabindex: 0,
                       role: 'application', 'aria-label': label, class: 'tile-grid'}, [
        svg('rect', {width, height, class: 'hit'}),
        svg('rect', {width, height, class: 'matrix'}),
        svg('path', {d: lines, class: 'grid'}),
        svg('rect', {x: block.col * across, y: block.row * down, width: Math.max(across, 5),
                     height: Math.max(down, 5), class: 'tile tile-d'}),
    ]);
}

// Traces, as one path, the runs of neighbours in a row that `isIn` accepts.
export function traceRuns(owners, cell, isIn) {
    let path = '';
    owners.forEach((threads, row) => {
        for (let col = 0; col < threads.length; col++) {
            const first = col;
            while (col < threads.length && isIn(threads[col]))
                col++;
            if (col > first)
                path += `M${first * cell} ${row * cell}h${(col - first) * cell}v${cell}` +
                        `h${-(col - first) * cell}z`;
        }
    });
    return path;
}

// Traces the edges where one warp's elements end and another's begin.
function traceWarpEdges(owners, cell) {
    const warpAt = (row, col) => Math.floor(owners[row][col] / 32);
    let path = '';
    for (let row = 0; row < owners.length; row++) {
        for (let col = 0; col < owners[0].length; col++) {
            if (row > 0 && warpAt(row, col) !== warpAt(row - 1, col))
                path += `M${col * cell} ${row * cell}h${cell}`;
            if (col > 0 && warpAt(row, col) !== warpAt(row, col - 1))
                path += `M${col * cell} ${row * cell}v${cell}`;
        }
    }
    return path;
}

function drawNumbers(svg, owners, cell, chosen) {
    return owners.flatMap((threads, row) => threads.map((thread, col) => svg('text', {
        x: (col + 0.5) * cell, y: (row + 0.5) * cell,
        class: thread === chosen ? 'cell chosen' : 'cell',
        style: `font-size: ${Math.min(12, Math.max(11, cell / 2.4))}px`}, String(thread))));
}

// Marks, beside the tile, the rows of A and the columns of B that the thread needs.
function drawNeeds(svg, {rows, cols}, cell) {
    const marks = [...rows].map(row => `M${-MARGIN} ${row * cell}h${MARGIN - 3}v${cell}` +
                                       `h${3 - MARGIN}z`);
    const tops = [...cols].map(col => `M${col * cell} ${-MARGIN}h${cell}v${MARGIN - 3}h${-cell}z`);
    return [svg('path', {d: marks.join(''), class: 'need need-a'}),
            svg('path', {d: tops.join(''), class: 'need need-b'})];
}

export const getTileCell = (owners, side) =>
    side / Math.max(owners.length, owners[0].length);

// Draws the owners. `owned` has the {rows, cols} of the thread; `block` has rowCount and colCount
// inside D; the tile is drawn in a square of `side` pixels.
export function drawOwners(svg, owners, thread, owned, block, label, side) {
    const cell = getTileCell(owners, side);
    const width = cell * owners[0].length;
    const height = cell * owners.length;
    const warp = Math.floor(thread / 32);
    const outside = [[block.colCount * cell, 0, width - block.colCount * cell, height],
                     [0, block.rowCount * cell, block.colCount * cell,
                      height - block.rowCount * cell]].filter(box => box[2] > 0 && box[3] > 0);
    return svg('svg', {viewBox: `${-MARGIN - 2} ${-MARGIN - 2} ${width + MARGIN + 4} ` +
                                `${height + MARGIN + 4}`,
                       width: width + MARGIN + 4, tabindex: 0, role: 'application',
                       'aria-label': label, class: 'owners'}, [
        svg('rect', {width, height, class: 'hit'}),
        svg('path', {d: traceRuns(owners, cell, other => other >= 0 &&
                                  Math.floor(other / 32) % 2 === 1), class: 'warp-odd'}),
        svg('path', {d: traceRuns(owners, cell, other => Math.floor(other / 32) === warp),
                     class: 'warp-here'}),
        svg('path', {d: traceWarpEdges(owners, cell),
                     class: cell < EDGE_LEAST ? 'warp-edge thin' : 'warp-edge'}),
        svg('path', {d: traceRuns(owners, cell, other => other === thread), class: 'thread-here'}),
        cell >= TEXT_LEAST ? drawNumbers(svg, owners, cell, thread) : null,
        outside.map(([x, y, w, h]) => svg('rect', {x, y, width: w, height: h, class: 'outside'})),
        drawNeeds(svg, owned, cell),
        svg('rect', {width, height, class: 'matrix'}),
    ].flat());
}
