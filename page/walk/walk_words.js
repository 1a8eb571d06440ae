// This module says in words what happens at a place of a walk: to the block, and to one thread.
import {formatCount} from '../parts/format.js';
import {formatRange} from '../facts/tiling.js';
import {formatValue} from './walk_values.js';

const TERMS_MOST = 6; // terms of a sum that are written out

export const PHASE_NAMES = {load: 'load', barrier: 'barrier', multiply: 'multiply',
                            store: 'store', arrive: 'wait for the copy'};

// Describes the places of D and k in words, for the caption and for who cannot see the drawing.
export function describeTiles({tiling, block, place}) {
    const step = tiling.getStep(place.step);
    return {down: formatRange(block.firstRow, block.rowCount),
            across: formatRange(block.firstCol, block.colCount),
            along: formatRange(step.first, step.count)};
}

export function describePhase(view) {
    const {tiling, place, walk, explained} = view;
    const {down, across, along} = describeTiles(view);
    const threads = formatCount(explained.threads_per_block);
    switch (place.phase) {
    case 'load':
        return `The block's ${threads} threads copy rows ${down}, columns ${along} of A and rows ` +
            `${along}, columns ${across} of B into shared memory. What lies outside becomes 0.`;
    case 'arrive':
        return 'Each thread waits for the copies that it started during the step before: rows ' +
            `${down}, columns ${along} of A and rows ${along}, columns ${across} of B.`;
    case 'barrier':
        return `All ${threads} threads wait for each other: ` + (walk.isBuffered
            ? 'the tiles are complete, and nobody still reads the other buffer.'
            : place.index === 1 ? 'nobody may read a tile before it is complete.'
            : 'nobody may overwrite a tile that another thread still reads.');
    case 'multiply':
        return `Each thread adds ${tiling.depth} ${tiling.depth > 1 ? 'products' : 'product'} to ` +
            `each of its sums, for rows ${down} and columns ${across} of D.` +
            (walk.isBuffered && place.loadedSteps > place.step + 1 ?
                ' Meanwhile the next tiles are copied into the other buffer.' : '');
    default:
        return `The sums of rows ${down}, columns ${across} are stored in D.`;
    }
}

// Names a thread by its place in the block: row first, as elements are named.
const nameThread = (thread, {threads_x: across}) =>
    `thread (${Math.floor(thread / across)}, ${thread % across})`;

// Returns the first element of D that the thread forms, or null if it forms none.
export function findElement({owners, thread, block}) {
    const row = owners.findIndex(line => line.includes(thread));
    return row < 0 ? null : {row: block.firstRow + row,
                             col: block.firstCol + owners[row].indexOf(thread)};
}

function writeSum({tiling, place, block, values}, {row, col}) {
    const step = tiling.getStep(place.step);
    const count = Math.min(step.count, TERMS_MOST);
    const terms = Array.from({length: count}, (_, i) => {
        const p = step.first + i;
        return `${formatValue(values.a(row, p))} x ${formatValue(values.b(p, col))}`;
    });
    const start = place.step ? [formatValue(values.sums(block, place.step)(row, col))] : [];
    const rest = step.count > count ? [`${step.count - count} more`] : [];
    return `D(${row}, ${col}) = ${[...start, ...terms, ...rest].join(' + ')} = ` +
        formatValue(values.sums(block, place.step + 1)(row, col));
}

// A tile this small has the sums of all its threads written out, a larger one that of the thread.
const hasAllSums = ({tiling, place}) =>
    place.phase === 'multiply' && tiling.rows * tiling.cols <= 4;

// Says of which threads describeThread() tells.
export const nameWho = view => hasAllSums(view) ? 'The threads of the block, a sum each'
    : `${nameThread(view.thread, view.threads)}, (row, column) in its block`;

// Returns the sums that are written out.
function listElements(view) {
    const {tiling, block} = view;
    if (!hasAllSums(view))
        return [findElement(view)];
    return Array.from({length: tiling.rows * tiling.cols}, (_, i) => ({
        row: block.firstRow + Math.floor(i / tiling.cols),
        col: block.firstCol + i % tiling.cols}));
}

// Returns lines on what the thread, or each thread of a small tile, does at this place.
export function describeThread(view) {
    const {place, tiling, values, block, explained, walk} = view;
    const element = findElement(view);
    const isInside = element && element.row < tiling.m && element.col < tiling.n;
    const inside = listElements(view).filter(one => one && one.row < tiling.m &&
                                                    one.col < tiling.n);
    switch (place.phase) {
    case 'load':
    case 'arrive':
        return [`It moves its share of the tiles: ${formatCount(tiling.depth * (tiling.rows +
            tiling.cols) / explained.threads_per_block)} elements a step.`];
    case 'barrier':
        return [`It waits for the other ${formatCount(explained.threads_per_block - 1)}.`];
    case 'multiply':
        return !values.hasSums ? ['The page forms no sums over so long a k.'] :
            inside.length ? inside.map(one => writeSum(view, one)) :
            [walk.hasShared ? 'Its element lies outside D; it only helps to load.' :
                              'Its element lies outside D; it does nothing.'];
    default:
        return [isInside && values.hasSums ? `It stores ${formatValue(values.sums(block,
            tiling.stepCount)(element.row, element.col))} to D(${element.row}, ${element.col}).` :
            isInside ? `It stores D(${element.row}, ${element.col}).` :
            'Its element lies outside D; it stores nothing.'];
    }
}
