// This module draws what a missing barrier does to a block of 2 x 2 threads: the words of shared
// memory that threads race for, and the sums that come out.
const CELL = 74;
const GAP = 34;
const TITLE = 20;

function drawGrid(svg, x, y, side, name, getCell) {
    const cells = Array.from({length: side * side}, (_, i) => {
        const row = Math.floor(i / side);
        const col = i % side;
        const box = {x: x + col * CELL, y: y + row * CELL, width: CELL, height: CELL};
        const {text, note, kind} = getCell(row, col);
        return [svg('rect', {...box, class: `race-cell ${kind}`}),
                svg('text', {x: box.x + CELL / 2, y: box.y + CELL / 2 - (note ? 9 : 0),
                             class: 'cell race-value'}, text),
                note ? svg('text', {x: box.x + CELL / 2, y: box.y + CELL / 2 + 14, class: 'cell'},
                           note) : null];
    });
    return [svg('text', {x, y: y - 7, class: 'name'}, name), cells,
            svg('rect', {x, y, width: side * CELL, height: side * CELL, class: 'matrix'})];
}

// Draws the tiles of A and B, with the words in `raced` that findings name, and the sums beside the
// right ones. Words are numbered through both tiles, A first.
export function drawRace(svg, side, raced, sums, right, label) {
    const width = 2 * side * CELL + GAP;
    const left = side * CELL + GAP;
    const top = TITLE + side * CELL + GAP;
    const word = first => (row, col) => raced.has(first + row * side + col)
        ? {text: 'race', kind: 'raced'} : {text: raced.size ? '' : '\u2713', kind: 'calm'};
    const sum = (row, col) => {
        const index = row * side + col;
        return sums[index] === right[index] ? {text: String(sums[index]), kind: 'calm'}
            : {text: String(sums[index]), kind: 'raced', note: `not ${right[index]}`};
    };
    return svg('svg', {viewBox: `-1 -1 ${width + 2} ${top + side * CELL + 2}`, width: width + 2,
                       role: 'img', 'aria-label': label, class: 'race'}, [
        drawGrid(svg, left, TITLE, side, 'tile of B, shared', word(side * side)),
        drawGrid(svg, 0, top, side, 'tile of A, shared', word(0)),
        drawGrid(svg, left, top, side, 'sums of the block', sum),
    ].flat(Infinity).filter(Boolean));
}
