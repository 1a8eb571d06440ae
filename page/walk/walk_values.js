// This module holds the numbers of a walk. A is 0, 1, 2, ... and B is 100, 101, ... row by row, as
// `simulate --trace` has them. The sums are the simulator's if the report holds its trace of this
// product.
const FIRST_B = 100;
const DEPTH_MOST = 4096; // the page itself forms sums of at most so many terms

const WHOLE = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const SHORT = new Intl.NumberFormat('en', {notation: 'compact', maximumSignificantDigits: 3});
const TEXT_WIDTH = 0.62; // width of a digit in parts of the font's size
export const TEXT_LEAST = 11;

// Writes 2352 as it is and 32921600 as 32,921,600.
export const formatValue = value => Math.abs(value) < 10000 ? String(value) : WHOLE.format(value);

// Writes a value for a cell of some width, as 32.9M where the whole number does not fit.
export function fitValue(value, width) {
    const whole = formatValue(value);
    return whole.length * TEXT_WIDTH * TEXT_LEAST <= width - 2 ? whole : SHORT.format(value);
}

const isOfBlock = (phase, block) => phase.block[0] === block.col && phase.block[1] === block.row;

// Reads the sums of a traced block after some phases, by the element that each thread will store.
function readSums(phases, stepsDone, n) {
    const byThread = new Map();
    for (const phase of phases.slice(0, 2 * stepsDone)) {
        for (const {thread, value} of phase.sums)
            byThread.set(String(thread), value);
    }
    const stores = phases.flatMap(phase => phase.moves).filter(move => move.space === 'D');
    const byElement = new Map(stores.map(move => [move.index, byThread.get(String(move.thread))]));
    return (row, col) => byElement.get(row * n + col);
}

// Forms an FP32 sum in the order of k, each product rounded, as the ladder's kernels do.
function formSum(a, b, row, col, depth) {
    let sum = 0;
    for (let p = 0; p < depth; p++)
        sum = Math.fround(sum + Math.fround(a(row, p) * b(p, col)));
    return sum;
}

export function makeValues(app, tiling, kernel) {
    const {m, n, k} = tiling;
    const a = (row, p) => Math.fround(row * k + p);
    const b = (p, col) => Math.fround(FIRST_B + p * n + col);
    const trace = tiling.barriersPerStep === 2 && app.data.traces.find(
        one => one.kernel === kernel && one.m === m && one.n === n && one.k === k &&
            !one.without_barrier);
    const getPhases = block => trace.phases.filter(phase => isOfBlock(phase, block));
    // Maps (row, col) to the sum of that element of D after some steps of the block.
    const sums = (block, stepsDone) => {
        if (trace)
            return readSums(getPhases(block), stepsDone, n);
        const depth = Math.min(k, stepsDone * tiling.depth);
        return (row, col) => formSum(a, b, row, col, depth);
    };
    return {
        a, b, sums, isTraced: Boolean(trace), hasSums: Boolean(trace) || k <= DEPTH_MOST,
        // Maps (row, col) to what has been stored in D: the sums of the blocks before, and of this
        // block if the place is its store. It is null elsewhere: sums so far are in registers.
        getStored(block, {isStore}) {
            const whole = new Map();
            return (row, col) => {
                const other = tiling.getBlock(row / tiling.rows, col / tiling.cols);
                const order = other.row - block.row || other.col - block.col;
                if (order > 0 || order === 0 && !isStore)
                    return null;
                const index = other.row * tiling.acrossCount + other.col;
                if (!whole.has(index))
                    whole.set(index, sums(other, tiling.stepCount));
                return whole.get(index)(row, col);
            };
        },
        // Returns what the threads move in a phase of the trace, thread by thread, or [] if the
        // report holds no trace of it.
        moves(block, phaseIndex) {
            const phase = trace ? getPhases(block)[phaseIndex] : null;
            return phase ? phase.moves : [];
        },
    };
}
