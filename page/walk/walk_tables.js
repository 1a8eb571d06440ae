// This module shows what lies in shared memory and in registers as tables of numbers, and what the
// threads move.
import {fitValue, formatValue} from './walk_values.js';
import {describeTiles} from './walk_words.js';

const SHOWN_MOST = 16; // a tile of more rows or columns is cut; depth may have twice as many

const COLS_WIDE = 8; // tables with more columns are shown small
const NARROW = 36;   // pixels of a number there

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

// Returns the function that writes the numbers of a table of `cols` columns: short ones if there
// are many columns.
const chooseFormat = cols => cols > COLS_WIDE ? value => fitValue(value, NARROW) : formatValue;

const EMPTY = {text: '·', kind: 'empty'};
const ZERO = {text: '0', kind: 'zero'};

// Shows the tiles that are or were multiplied in this step.
export function showShared(html, {tiling, block, place, walk, values}) {
    if (!walk.hasShared)
        return [html('p', {}, 'No shared memory: each thread reads A and B where they lie.')];
    const step = tiling.getStep(place.step);
    const writeA = chooseFormat(tiling.depth);
    const writeB = chooseFormat(tiling.cols);
    const a = (row, p) => block.firstRow + row < tiling.m && step.first + p < tiling.k ?
        {text: writeA(values.a(block.firstRow + row, step.first + p)), kind: ''} : ZERO;
    const b = (p, col) => step.first + p < tiling.k && block.firstCol + col < tiling.n ?
        {text: writeB(values.b(step.first + p, block.firstCol + col)), kind: ''} : ZERO;
    const other = place.loadedSteps > place.step + 1 ?
        `tiles of step ${place.loadedSteps}, on their way` : 'free';
    const {m, n, k} = tiling;
    return [makeGrid(html, 'tile of A', 'tile-a', tiling.rows, tiling.depth,
                     writeA(values.a(m - 1, k - 1)).length, a),
            makeGrid(html, 'tile of B', 'tile-b', tiling.depth, tiling.cols,
                     writeB(values.b(k - 1, n - 1)).length, b),
            walk.isBuffered ? html('p', {}, [html('b', {}, 'the other buffer'), `: ${other}`]) :
                              null];
}

export function showSums(html, {tiling, block, place, values}) {
    if (!values.hasSums)
        return html('p', {class: 'tile-note tile-d'}, `${block.rowCount} x ${block.colCount} sums`);
    const sums = values.sums(block, place.multipliedSteps);
    const write = chooseFormat(tiling.cols);
    const getCell = (row, col) => {
        if (row >= block.rowCount || col >= block.colCount)
            return {text: '-', kind: 'zero'};
        return place.multipliedSteps ?
            {text: write(sums(block.firstRow + row, block.firstCol + col)), kind: ''} : EMPTY;
    };
    const last = values.sums(block, tiling.stepCount);
    return makeGrid(html, 'sums', 'tile-d', tiling.rows, tiling.cols,
                    write(last(block.firstRow + block.rowCount - 1,
                               block.firstCol + block.colCount - 1)).length, getCell);
}

const listTiles = view => {
    const {down, across, along} = describeTiles(view);
    return [['A', down, along], ['B', along, across], ['D', down, across]];
};

// Returns {columns, rows} of what the threads move at this place if the report holds a trace of it,
// otherwise of where the tiles lie.
export function listMoves(view) {
    const {tiling, block, place, walk, values} = view;
    const index = place.isStore ? 2 * tiling.stepCount :
                  2 * place.step + (place.index >= 2 ? 1 : 0);
    const moves = values.isTraced ? values.moves(block, index) : [];
    const name = (space, at) => {
        const cols = space === 'A' ? tiling.k : tiling.n;
        return space === 'S' ? `shared[${at}]` : `${space}(${Math.floor(at / cols)}, ${at % cols})`;
    };
    if (!walk.hasShared || !moves.length)
        return {columns: ['matrix', 'rows', 'columns'], rows: listTiles(view)};
    return {columns: ['thread (row, column)', 'does', 'place', 'line'],
            rows: moves.map(({thread: [x, y], ...move}) => [`(${y}, ${x})`,
                move.is_write ? 'writes' : 'reads', name(move.space, move.index), move.line])};
}
