// This module draws A, B and D with a count in each element: how often threads have read it.
const CELL_MOST = 62;
const GAP = 40;
const TITLE = 22;

// Draws one matrix; getCount(row, col) is the count of an element, `most` the largest one.
function drawCounts(svg, {x, y, rows, cols, cell, name, kind, most, getCount, getText}) {
    const cells = Array.from({length: rows * cols}, (_, i) => {
        const row = Math.floor(i / cols);
        const col = i % cols;
        const count = getCount(row, col);
        const box = {x: x + col * cell, y: y + row * cell, width: cell, height: cell};
        return [svg('rect', {...box, class: `heat ${kind}`,
                             style: `fill-opacity: ${count ? 0.12 + 0.33 * count / most : 0}`}),
                svg('text', {x: box.x + cell / 2, y: box.y + cell / 2,
                             class: count ? 'cell' : 'cell nought'}, getText(count))];
    });
    return [svg('text', {x, y: y - 7, class: 'name'}, name), cells,
            svg('rect', {x, y, width: cols * cell, height: rows * cell, class: 'matrix'})];
}

// Draws the reads of a product of {m, n, k}: `reads` maps "A row col" to a count, `formed` has the
// elements of D that are done, as "row col". The drawing is at most `most` pixels wide.
export function drawReads(svg, {m, n, k}, reads, formed, label, most) {
    const cell = Math.min(CELL_MOST, Math.floor((most - GAP - 2) / (k + n)));
    const left = k * cell + GAP;
    const top = TITLE + k * cell + GAP;
    const count = name => (row, col) => reads.get(`${name} ${row} ${col}`) ?? 0;
    const times = value => `${value} x`;
    const width = left + n * cell;
    const height = top + m * cell;
    return svg('svg', {viewBox: `-1 -1 ${width + 2} ${height + 2}`, width: width + 2, role: 'img',
                       'aria-label': label, class: 'heat-picture'}, [
        drawCounts(svg, {x: left, y: TITLE, rows: k, cols: n, cell, name: 'B: reads', kind: 'b',
                         most: m, getCount: count('B'), getText: times}),
        drawCounts(svg, {x: 0, y: top, rows: m, cols: k, cell, name: 'A: reads', kind: 'a',
                         most: n, getCount: count('A'), getText: times}),
        drawCounts(svg, {x: left, y: top, rows: m, cols: n, cell, name: 'D: formed', kind: 'd',
                         most: 1, getCount: (row, col) => formed.has(`${row} ${col}`) ? 1 : 0,
                         getText: done => done ? '\u2713' : ''}),
    ].flat(Infinity));
}
