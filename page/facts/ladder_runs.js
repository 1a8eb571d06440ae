// This module sets what was measured of the ladder beside what the model predicts of the same
// kernel and tile.
import {isHere, isOfSize, isPeer, isPlain, listMeasured, nameRecord} from './bench.js';
import {predictRate} from './model.js';

// Names a run; a GPU has no thread count that would tell anything.
const nameRun = ({shape, processor, device, threads, isOnCpu, mode, file}) =>
    `${shape} on ${processor || device}, ` + (isOnCpu && device === 'cpu'
        ? `${threads} thread${threads === 1 ? '' : 's'}, ` : '') +
    `${mode || 'caches not told'}, ${file}`;

// Groups the records of the result files into runs: one file, one shape, one thread count.
export function listRuns(app) {
    const runs = new Map();
    for (const record of app.records) {
        // The textbook loop of the host stands in the GPU's run.
        const key = [record.index, record.shape, record.device, record.threads].join(' ');
        if (!runs.has(key))
            runs.set(key, {name: nameRun(record), records: [], m: record.m, n: record.n,
                           k: record.k, chip: record.chip});
        const run = runs.get(key);
        run.records.push(record);
        if (record.chip && !run.chip)
            Object.assign(run, {chip: record.chip, name: nameRun(record)});
    }
    return [...runs.values()];
}

const findRow = (app, name) => app.model.kernels.find(one => one.name === name);
const getRung = (app, name) => findRow(app, name)?.ladder_rung ?? -1;

// Returns the run with the most rungs among those at this size, on the chip at hand or otherwise on
// a processor.
export function findRun(app, runs) {
    const countRungs = run => run.records.filter(one => getRung(app, one.name) > 0).length;
    const isOfState = ([record]) => isPlain(record) && isOfSize(app.state)(record);
    const found = runs.filter(run => isOfState(run.records))
        .sort((a, b) => countRungs(b) - countRungs(a));
    return found.find(run => run.records.some(isHere(app))) ?? found.find(
        run => run.records.every(one => one.isOnCpu && one.mode === app.state.mode)) ?? null;
}

// Names a rung; its type is part of the name where it is not that of the other rungs.
function nameRung(app, {family, ladder_rung: rung, tile_rows: rows, tile_cols: cols}) {
    const {type} = app.families.find(row => row.family === family);
    return `${rung} ${family.replaceAll('_', ' ')} ${rows} x ${cols}` +
        (type === 'fp32' ? '' : `, ${type.toUpperCase()}`);
}

// Makes an entry of a rung from its row: what the model predicts and what was measured.
function makeRung(app, sizes, kernel, tile, record) {
    const explained = app.model.explain({...sizes, kernel, tile});
    if (explained.error)
        return null;
    return {name: nameRung(app, explained), family: explained.family, explained, record,
            predicted: explained.is_legal ? predictRate(explained) : null,
            refusal: explained.is_legal ? '' : explained.reason};
}

// Returns the entries of the rungs: those rows that were measured, and of every other rung the tile
// of the state, or else one that the rung has.
function listRungs(app, sizes, records) {
    return app.families.flatMap(({family}) => {
        const measured = records.filter(one => findRow(app, one.name)?.family === family &&
                                               getRung(app, one.name) >= 0);
        if (measured.length)
            return measured.map(one => makeRung(app, sizes, one.name, 0, one));
        const tile = app.listTiles(family).includes(app.state.tile) ? app.state.tile
            : app.findRowTile(family);
        return [makeRung(app, sizes, family, tile, null)];
    }).filter(Boolean);
}

const nameShort = (row, isChosen) => row &&
    `${isChosen ? 'planner: ' : ''}${row.family} ${row.tile_rows} x ${row.tile_cols}`;

// Returns the entries of production kernels and libraries: the planner's choice, and what else was
// measured.
function listOthers(app, sizes, records) {
    const candidates = new Map(app.model.listCandidates(sizes).map(one => [one.kernel, one]));
    const flops = 2 * sizes.m * sizes.n * sizes.k;
    const chosen = [...candidates.values()].find(one => one.is_chosen);
    const isRung = name => getRung(app, name) >= 0;
    const names = new Set([...chosen && !isRung(chosen.kernel) ? [chosen.kernel] : [],
        ...records.filter(one => !isPeer(one) && !isRung(one.name)).map(one => one.name)]);
    const kernels = [...names].map(name => {
        const one = candidates.get(name);
        return {name: `${name}${one?.is_chosen ? ', the planner\'s choice' : ''}`,
                short: nameShort(findRow(app, name), one?.is_chosen) ?? name,
                predicted: one?.is_legal ? flops / one.predicted_s : null, refusal: '',
                record: records.find(record => record.name === name) ?? null};
    });
    const peers = records.filter(isPeer).sort((a, b) => a.gflop_per_s - b.gflop_per_s)
        .map(record => ({name: nameRecord(record), predicted: null, refusal: '', record,
                         isPeer: true}));
    return [...kernels, ...peers];
}

// Returns the ladder of a run, or of the state where nothing was measured: {m, n, k, chip, entries,
// onCpu}. An entry has `predicted` in FLOP/s (null: not), the `record` (null: none), and if it is a
// rung the model's `explained`.
export function makeLadder(app, run) {
    const {m, n, k, chip} = run ?? app.state;
    const sizes = {m, n, k, chip: chip ?? app.state.chip};
    const records = (run?.records ?? []).filter(one => !one.isOnCpu);
    const isTold = !run || run.isOwn || isPlain(run.records[0]);
    return {...sizes, onCpu: (run?.records ?? []).filter(one => one.isOnCpu),
            entries: isTold ? [...listRungs(app, sizes, records),
                               ...listOthers(app, sizes, records)]
                : records.map(record => ({name: nameRecord(record), predicted: null, refusal: '',
                                          record, isPeer: isPeer(record)}))};
}

// Returns true for a rung that multiplied BF16, with A and B row-major and nothing added.
const isRungOfBf16 = (app, record) => record.suffix === 'bf16' && record.layout === 'nn' &&
    getRung(app, record.name) > 0;

// Returns the run of what was measured of the report's own product on the chip at hand, each rung
// with elements of its own type, or null.
export function findOwnRun(app, {m, n, k}) {
    const records = listMeasured(app, record => isOfSize({m, n, k})(record) &&
        (isPlain(record) || isRungOfBf16(app, record)));
    return records.length ? {m, n, k, chip: app.state.chip, records, isOwn: true} : null;
}
