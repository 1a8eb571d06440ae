// This module shows what lies in shared memory and in registers, as tables of numbers.
import {formatValue} from './walk_values.js';

const SHOWN_MOST = 16; // a tile of more rows or columns is cut; depth may have twice as many

const COLS_WIDE = 8; // tables with more columns are shown small

const TERM_SUMS_MOST = 16;
const TERM_DEPTH_MOST = 4;

const isShown = (rows, cols) => rows <= 2 * SHOWN_MOST && cols <= 2 * SHOWN_MOST &&
                                rows * cols <= 2 * SHOWN_MOST * SHOWN_MOST;

// Makes a grid of cells. getCell(row, col) returns {text, kind}; the kinds are 'zero' (outside the
// matrix), 'empty' and ''.
function makeGrid(html, caption, kind, rows, cols, digits, getCell) {
    if (!isShown(rows, cols))
        return html('p', {class: `tile-note ${kind}`}, [html('b', {}, caption),
            `: ${rows} x ${cols}, ${rows * cols} elements`]);
    const line = row => html('tr', {}, Array.from({length: cols}, (_, col) => {
        const {text, kind: cell} = getCell(row, col);
        return html('td', {class: cell, title: cell === 'zero' ? 'outside: zero' : null}, text);
    }));
    return html('div', {class: 'grid-of-numbers', tabindex: 0, role: 'region',
                        'aria-label': caption},
        html('table', {class: `cells ${kind}${cols > COLS_WIDE ? ' narrow' : ''}`,
                       style: `--digits: ${digits}`}, [
            html('caption', {}, caption),
            html('tbody', {}, Array.from({length: rows}, (_, row) => line(row)))]));
}

// Makes cells as wide as the longest number that the walk comes to, so that they stay in place.
const countDigits = value => formatValue(value).length;

const EMPTY = {text: '·', kind: 'empty'};
const ZERO = {text: '0', kind: 'zero'};

// Shows the tiles that are or were multiplied in this step.
export function showShared(html, {tiling, block, place, walk, values}) {
    if (!walk.hasShared)
        return [html('p', {}, 'No shared memory: each thread reads A and B where they lie.')];
    const step = tiling.getStep(place.step);
    const a = (row, p) => block.firstRow + row < tiling.m && step.first + p < tiling.k ?
        {text: formatValue(values.a(block.firstRow + row, step.first + p)), kind: ''} : ZERO;
    const b = (p, col) => step.first + p < tiling.k && block.firstCol + col < tiling.n ?
        {text: formatValue(values.b(step.first + p, block.firstCol + col)), kind: ''} : ZERO;
    const other = place.loadedSteps > place.step + 1 ?
        `tiles of step ${place.loadedSteps}, on their way` : 'free';
    const {m, n, k} = tiling;
    return [makeGrid(html, 'tile of A', 'tile-a', tiling.rows, tiling.depth,
                     countDigits(values.a(m - 1, k - 1)), a),
            makeGrid(html, 'tile of B', 'tile-b', tiling.depth, tiling.cols,
                     countDigits(values.b(k - 1, n - 1)), b),
            walk.isBuffered ? html('p', {}, [html('b', {}, 'the other buffer'), `: ${other}`]) :
                              null];
}

export function showSums(html, {tiling, block, place, values}) {
    if (!values.hasSums)
        return html('p', {class: 'tile-note tile-d'}, `${block.rowCount} x ${block.colCount} sums`);
    const sums = values.sums(block, place.multipliedSteps);
    const getCell = (row, col) => {
        if (row >= block.rowCount || col >= block.colCount)
            return {text: '-', kind: 'zero'};
        return place.multipliedSteps ?
            {text: formatValue(sums(block.firstRow + row, block.firstCol + col)), kind: ''} : EMPTY;
    };
    const last = values.sums(block, tiling.stepCount);
    return makeGrid(html, 'sums', 'tile-d', tiling.rows, tiling.cols,
                    countDigits(last(block.firstRow + block.rowCount - 1,
                                     block.firstCol + block.colCount - 1)), getCell);
}

// Shows how each sum was formed in this step, term by term, if that fits on a few lines.
export function showTerms(html, {tiling, block, place, values}) {
    const {rows, cols, depth} = tiling;
    if (place.phase !== 'multiply' || rows * cols > TERM_SUMS_MOST || depth > TERM_DEPTH_MOST)
        return null;
    const step = tiling.getStep(place.step);
    const before = values.sums(block, place.step);
    const after = values.sums(block, place.step + 1);
    const lines = [];
    for (let row = block.firstRow; row < block.firstRow + block.rowCount; row++) {
        for (let col = block.firstCol; col < block.firstCol + block.colCount; col++) {
            const terms = Array.from({length: step.count}, (_, i) =>
                `${values.a(row, step.first + i)} x ${values.b(step.first + i, col)}`);
            const start = place.step ? [formatValue(before(row, col))] : [];
            lines.push(`D(${row}, ${col}) = ${[...start, ...terms].join(' + ')} = ` +
                       formatValue(after(row, col)));
        }
    }
    return html('ul', {class: 'terms'}, lines.map(line => html('li', {}, line)));
}
