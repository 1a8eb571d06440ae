// This module draws what moves in a phase of a walk: elements that fly from the matrices into the
// tiles, threads that wait at a barrier, products that light up, sums that fly to D. Every drawing
// says the same when it stands still, as it does for who asked for less motion.
import {traceRuns} from '../pictures/owners_picture.js';

const FLIGHTS_MOST = 64; // more elements fly together, as rows of the tile
const STRIPS_MOST = 16;
const WARP_THREADS = 32;
const DENSE = 7;     // pixels of an element: lines around smaller ones would fill them
const SPREAD = 0.5; // share of a phase in which one after another starts

// Cuts a tile of rows x cols into the parts that fly together: [row, col, rows, cols].
function listParts(rows, cols) {
    if (rows * cols <= FLIGHTS_MOST)
        return Array.from({length: rows * cols}, (_, i) => [Math.floor(i / cols), i % cols, 1, 1]);
    const height = Math.ceil(rows / STRIPS_MOST);
    return Array.from({length: Math.ceil(rows / height)}, (_, i) =>
        [i * height, 0, Math.min(height, rows - i * height), cols]);
}

// Makes a rectangle at `to` that begins its way at `from`.
const makeFlight = (svg, from, to, kind, delay) => svg('rect', {
    ...to, class: `flight ${kind}`,
    style: `--dx: ${from.x - to.x}px; --dy: ${from.y - to.y}px; ` +
           `--sx: ${from.width / to.width}; --sy: ${from.height / to.height}; ` +
           `--start: ${delay.toFixed(3)}`});

// Lets the parts of a tile that lie inside its matrix fly from one place to another.
function drawFlights(svg, source, target, [firstRow, firstCol], [rows, cols], kind, isBack) {
    const parts = rows > 0 && cols > 0 ? listParts(rows, cols) : [];
    return parts.map(([row, col, height, width], i) => {
        const there = source.getBox(firstRow + row, firstCol + col, height, width);
        const here = target.getBox(row, col, height, width);
        const delay = SPREAD * i / parts.length;
        return isBack ? makeFlight(svg, here, there, kind, delay)
                      : makeFlight(svg, there, here, kind, delay);
    });
}

function drawLoads(svg, {tiling, block, place, layout: {matrices, tiles}}) {
    const step = tiling.getStep(place.phase === 'multiply' ? place.step + 1 : place.step);
    return [drawFlights(svg, matrices.a, tiles.a, [block.firstRow, step.first],
                        [block.rowCount, step.count], 'tile-a'),
            drawFlights(svg, matrices.b, tiles.b, [step.first, block.firstCol],
                        [step.count, block.colCount], 'tile-b')];
}

const drawStores = (svg, {block, layout: {matrices, tiles}}) => drawFlights(
    svg, matrices.d, tiles.d, [block.firstRow, block.firstCol], [block.rowCount, block.colCount],
    'tile-d', true);

// Lights column p of the tile of A and row p of the tile of B, one p after another, and all sums.
function drawProducts(svg, {tiling, place, layout: {tiles: {a, b, d}}}) {
    const {rows, cols} = tiling;
    const {count} = tiling.getStep(place.step);
    const lit = Array.from({length: count}, (_, p) => {
        const style = `--start: ${(p / count).toFixed(3)}; --part: ${(1 / count).toFixed(3)}`;
        return [svg('rect', {...a.getBox(0, p, rows, 1), class: 'lit', style}),
                svg('rect', {...b.getBox(p, 0, 1, cols), class: 'lit', style})];
    });
    return [lit, svg('rect', {...d.getBox(0, 0, rows, cols), class: 'lit-sums'})];
}

// Draws the threads as they arrive at a barrier: one by one, or warp by warp where there are many.
function drawWaiting(svg, {owners, layout: {tiles: {d}}, tiling}) {
    const {x, y} = d.getBox(0, 0, 1, 1);
    const threadCount = Math.max(...owners.map(line => Math.max(...line))) + 1;
    const size = threadCount > FLIGHTS_MOST ? WARP_THREADS : 1;
    const groups = Array.from({length: Math.ceil(threadCount / size)}, (_, group) => svg('path', {
        d: traceRuns(owners, d.perRow, owner => Math.floor(owner / size) === group),
        class: d.perRow < DENSE ? 'waits dense' : 'waits', transform: `translate(${x} ${y})`,
        style: `--start: ${(0.6 * group * size / threadCount).toFixed(3)}`}));
    const box = d.getBox(0, 0, tiling.rows, tiling.cols);
    return [groups, svg('rect', {...box, class: 'gate'})];
}

// Draws the motion of the phase at hand; a buffered kernel copies while it multiplies.
export function drawMotion(svg, view) {
    const {place, walk, tiling} = view;
    switch (place.phase) {
    case 'load':
        return drawLoads(svg, view);
    case 'barrier':
        return drawWaiting(svg, view);
    case 'multiply':
        return [drawProducts(svg, view),
                walk.isBuffered && place.step + 1 < tiling.stepCount
                    ? svg('g', {class: 'ahead'}, drawLoads(svg, view).flat()) : null];
    case 'store':
        return drawStores(svg, view);
    default:
        return walk.isBuffered && place.step === 0 ? drawLoads(svg, view) : null;
    }
}
