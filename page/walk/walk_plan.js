// A walk goes through a block as a line of places: the phases of each step along k, then the store.

// PHASES lists the phases of a step by the number of barriers that a kernel has in it.
const PHASES = {
    2: ['load', 'barrier', 'multiply', 'barrier'],
    1: ['arrive', 'barrier', 'multiply'], // the step before copied in the background
    0: ['multiply'],                      // this kernel has no shared memory
};

export function makeWalk(tiling) {
    const phases = PHASES[Math.round(tiling.barriersPerStep)] || PHASES[0];
    const storePlace = tiling.stepCount * phases.length;
    return {
        phases, storePlace, hasShared: phases.length > 1, isBuffered: phases[0] === 'arrive',
        // Returns what happens at a place, and what is done once it is over.
        getPlace(at) {
            const place = Math.min(Math.max(0, Math.round(at)), storePlace);
            const isStore = place === storePlace;
            const step = isStore ? tiling.stepCount - 1 : Math.floor(place / phases.length);
            const index = isStore ? phases.length : place % phases.length;
            const phase = isStore ? 'store' : phases[index];
            const isMultiplied = index >= phases.indexOf('multiply');
            const isLoaded = phases.length === 1 ? isMultiplied : true;
            const isAhead = phases[0] === 'arrive' && isMultiplied && step + 1 < tiling.stepCount;
            return {place, step, index, phase, isStore,
                    multipliedSteps: step + (isMultiplied ? 1 : 0),
                    loadedSteps: step + (isLoaded ? 1 : 0) + (isAhead ? 1 : 0)};
        },
    };
}

const COUNTED = ['global_read_elems', 'naive_read_elems', 'issued_flops', 'useful_flops'];

// Counts what is done up to a place, as the model does. The blocks before this one, and the steps
// of this block that are done, are products of their own: the rows of blocks above, the blocks to
// the left, and this one as far as it has come. `usedElems` counts the
// operands of all products, which the textbook loop would have read: it only grows.
export function countDone(app, {shown: {kernel, tile}, tiling, block, place}) {
    const count = (m, n, k) => m && n && k ? app.explain({m, n, k, kernel, tile}) : {};
    const add = parts => Object.fromEntries(COUNTED.map(
        key => [key, parts.reduce((sum, part) => sum + (part[key] ?? 0), 0)]));
    const before = [count(block.firstRow, tiling.n, tiling.k),
                    count(block.rowCount, block.firstCol, tiling.k)];
    const here = steps => count(block.rowCount, block.colCount,
                                Math.min(tiling.k, steps * tiling.depth));
    const loaded = add([...before, here(place.loadedSteps)]);
    const multiplied = add([...before, here(place.multipliedSteps)]);
    return {loadedElems: loaded.global_read_elems, issuedFlops: multiplied.issued_flops,
            usefulFlops: multiplied.useful_flops, usedElems: multiplied.naive_read_elems};
}
