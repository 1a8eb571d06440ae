// This module draws the places that a multiprocessor has for warps, and the blocks that fill them.
const ACROSS = 16;
const CELL_MOST = 44;
const HEIGHT = 34;

// Draws `placeCount` places, of which each of `blockCount` blocks fills `warpCount`. A place has
// the number of its block, and neighbouring blocks have different colours.
export function drawWarps(svg, {placeCount, blockCount, warpCount, label}, most) {
    const cell = Math.min(CELL_MOST, Math.floor((most - 2) / ACROSS));
    const width = ACROSS * cell;
    const height = Math.ceil(placeCount / ACROSS) * HEIGHT;
    const places = Array.from({length: placeCount}, (_, i) => {
        const block = Math.floor(i / warpCount);
        const isFilled = block < blockCount;
        const box = {x: i % ACROSS * cell, y: Math.floor(i / ACROSS) * HEIGHT, width: cell,
                     height: HEIGHT};
        return [svg('rect', {...box, class: `heat ${block % 2 ? 'b' : 'a'}`,
                             style: `fill-opacity: ${isFilled ? 0.35 : 0}`}),
                isFilled ? svg('text', {x: box.x + cell / 2, y: box.y + HEIGHT / 2, class: 'cell'},
                               String(block + 1)) : null];
    });
    return svg('svg', {viewBox: `-1 -1 ${width + 2} ${height + 2}`, width: width + 2, role: 'img',
                       'aria-label': label, class: 'warps'},
        [...places.flat().filter(Boolean),
         svg('rect', {x: 0, y: 0, width, height, class: 'matrix'})]);
}
