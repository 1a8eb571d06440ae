// This module draws an online softmax: the weights of the keys that came so far, relative to the
// largest score, in tiles.

const BAR = 34;
const GAP = 6;         // pixels between bars
const TILE_GAP = 22;
const TOP = 22;        // room for the names of tiles
const HEIGHT = 84;     // pixels of a weight of 1
const FOOT = 40;       // room for scores below the bars

// Writes a weight, a power of two, as 1/4.
export const formatWeight = weight => weight === 0 ? '0' : weight < 1 ? `1/${1 / weight}`
    : String(weight);

// Returns the state after each tile: [{largest, factor, total, sum, weights}], the first before any
// tile. `scores` are base 2; `factor` is what the tile multiplies the sums before it by.
export function runSoftmax(scores, values, tile) {
    const states = [{largest: -Infinity, factor: 1, total: 0, sum: 0, weights: []}];
    for (let first = 0; first < scores.length; first += tile) {
        const before = states[states.length - 1];
        const seen = scores.slice(0, first + tile);
        const largest = Math.max(...seen);
        const factor = first ? 2 ** (before.largest - largest) : 1;
        const weights = seen.map(score => 2 ** (score - largest));
        const added = weights.slice(first);
        states.push({
            largest, factor, weights,
            total: before.total * factor + added.reduce((all, one) => all + one, 0),
            sum: before.sum * factor +
                added.reduce((all, one, i) => all + one * values[first + i], 0)});
    }
    return states;
}

// Draws the weights after `step` tiles of `tile` scores each.
export function drawSoftmax(svg, {scores, tile, step, state, label}) {
    const place = i => i * (BAR + GAP) + Math.floor(i / tile) * (TILE_GAP - GAP);
    const width = place(scores.length - 1) + BAR + 2;
    const bottom = TOP + HEIGHT;
    const bars = scores.map((score, i) => {
        const weight = state.weights[i];
        const isSeen = weight !== undefined;
        const height = isSeen ? Math.max(1.5, weight * HEIGHT) : HEIGHT;
        const kind = !isSeen ? 'to-come' : Math.floor(i / tile) === step - 1 ? 'new' : 'seen';
        return [svg('rect', {x: place(i), y: bottom - height, width: BAR, height,
                             class: `weight ${kind}`}),
                svg('text', {x: place(i) + BAR / 2, y: bottom + 12, class: 'cell'},
                    isSeen ? formatWeight(weight) : '?'),
                svg('text', {x: place(i) + BAR / 2, y: bottom + 30, class: 'head'}, `s ${score}`)];
    });
    const names = Array.from({length: scores.length / tile}, (_, i) => svg('text', {
        x: (place(i * tile) + place(i * tile + tile - 1) + BAR) / 2, y: 12,
        class: i < step ? 'cell name' : 'cell'}, `tile ${i + 1}`));
    return svg('svg', {viewBox: `-1 0 ${width + 2} ${bottom + FOOT}`, width: width + 2,
                       role: 'img', 'aria-label': label, class: 'softmax'}, [names, bars].flat(2));
}
