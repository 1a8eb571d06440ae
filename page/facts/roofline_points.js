// This module makes the points of the roofline (rungs of the ladder, rows of the planner, measured
// records) and the tiles that its sliders go through.
import {isOfSize, isPeer, isPlain, listMeasured, nameOrigin, nameRecord} from './bench.js';
import {predictRate} from './model.js';
import {findUnit} from './units.js';

// Threads of these families of the planner hold a register tile each, and the families take every
// size.
const PLANNED_FAMILIES = ['small', 'simt'];

const listPlanned = app => app.model.kernels.filter(row => row.device === 'cuda' &&
    row.type === 'fp32' && PLANNED_FAMILIES.includes(row.family));
const nameRegisters = row => `${row.thread_rows} x ${row.thread_cols}`;
const countSums = row => row.thread_rows * row.thread_cols;

// Returns the planner's row that the state is at, or undefined if the state is at a tile of the
// ladder.
export const findRow = app => listPlanned(app).find(row => row.name === app.state.row);

export const findRegisters = app => nameRegisters(
    findRow(app) ?? app.families.find(row => row.family === app.state.kernel));

// Returns the tiles of a block with the register tile at hand, those of the rung and then those of
// the planner's rows: [{id, label, changes of the state}].
export function listBlockTiles(app) {
    const registers = findRegisters(app);
    const rung = app.families.find(row => row.family === app.state.kernel);
    const tiles = nameRegisters(rung) === registers ? app.listTiles(rung.family) : [];
    return [
        ...tiles.map(tile => ({id: String(tile), label: `${tile} x ${tile}`,
                               changes: {tile, row: ''}})),
        ...listPlanned(app).filter(row => nameRegisters(row) === registers)
            .sort((a, b) => a.tile_rows * a.tile_cols - b.tile_rows * b.tile_cols)
            .map(row => ({id: row.name, changes: {row: row.name},
                          label: `${row.tile_rows} x ${row.tile_cols} of ${row.family}`})),
    ];
}

// Returns the register tiles of all kernels, from small to large: [{id: "8 x 8", changes}]. A rung
// that begins with one is taken before a row of the planner (from rung 4 on, which takes every
// size).
export function listRegisterTiles(app) {
    const tiles = new Map();
    const rows = [...app.families.filter(row => row.ladder_rung >= 4), ...listPlanned(app)];
    for (const row of rows) {
        if (!tiles.has(nameRegisters(row)))
            tiles.set(nameRegisters(row), {
                id: nameRegisters(row), sums: countSums(row),
                changes: row.ladder_rung >= 0 ? {kernel: row.family, row: ''} : {row: row.name}});
    }
    return [...tiles.values()].sort((a, b) => a.sums - b.sums);
}

// Makes a point: a name, its intensity in FLOP a byte, its rate in FLOP/s (null if the kernel
// cannot run), and what the table and the verdict say of it.
const pointOfRung = (app, explained, isChosen) => ({
    name: `${explained.family} ${explained.tile_rows} x ${explained.tile_cols}`, isChosen,
    family: explained.family, tile: explained.tile_rows,
    unit: findUnit(app.families.find(row => row.family === explained.family)),
    kind: 'rung', intensity: explained.flop_per_byte,
    rate: explained.is_legal ? predictRate(explained) : null,
    sharedBytes: explained.shared_bytes, threads: explained.threads_per_block,
    registers: explained.registers_per_thread, blocks: explained.resident_blocks,
    occupancy: explained.occupancy, occupancyLimiter: explained.occupancy_limiter,
    seconds: explained.is_legal ? explained.predicted_s : null,
    bound: explained.bound, limiter: explained.limiter,
    refusal: explained.is_legal ? '' : explained.reason});

const findRowUnit = (app, name) => findUnit(app.model.kernels.find(row => row.name === name));

const pointOfCandidate = (app, one, flops, isChosen) => ({
    name: one.kernel, isChosen, kind: 'row', unit: findRowUnit(app, one.kernel),
    splitCount: one.split_count, refusal: one.is_legal ? '' : one.reason,
    intensity: one.global_read_bytes > 0 ? flops / one.global_read_bytes : NaN,
    rate: one.is_legal ? flops / one.predicted_s : null,
    seconds: one.is_legal ? one.predicted_s : null,
    sharedBytes: one.shared_bytes, threads: one.threads_per_block, occupancy: one.occupancy,
    isPlanned: one.is_chosen, verdict: one.is_chosen ? 'the planner\'s choice' : one.reason});

// Returns the points of one tile for every family of the ladder, and of all tiles for the chosen
// family.
function listRungs(app) {
    const row = findRow(app);
    return app.families.flatMap(({family}) => {
        const isOwn = family === app.state.kernel;
        const tiles = app.listTiles(family);
        return (isOwn ? tiles : [app.findRowTile(family)]).flatMap(tile => {
            const explained = app.explain({kernel: family, tile});
            const isChosen = !row && isOwn && tile === app.state.tile;
            return explained.error || !explained.is_legal && !isChosen
                ? [] : [pointOfRung(app, explained, isChosen)];
        });
    });
}

const countFlops = app => app.explain({kernel: 'naive', tile: 16}).useful_flops;

// Returns the points of the rungs, of the planner's choice, and of the planner's row that the
// sliders are at.
export function listPredicted(app) {
    const row = findRow(app);
    const flops = countFlops(app);
    const rungs = new Set(app.model.kernels.filter(one => one.ladder_rung >= 0)
        .map(one => one.name));
    return listRungs(app).concat(app.model.listCandidates(app.state)
        .filter(one => one.kernel === row?.name || one.is_chosen && !rungs.has(one.kernel))
        .map(one => pointOfCandidate(app, one, flops, one.kernel === row?.name)));
}

// Returns the measured points. A kernel stands at the intensity that the model counts for it;
// others stand at that of reading A and B and writing D once.
export function listMeasuredPoints(app) {
    const flops = countFlops(app);
    const once = flops / app.model.countOperandBytes(app.state);
    const read = new Map(app.model.listCandidates(app.state).filter(one => one.is_legal)
        .map(one => [one.kernel, one.global_read_bytes]));
    return listMeasured(app, record => isPlain(record) && isOfSize(app.state)(record))
        .map(record => ({
            name: nameRecord(record), origin: nameOrigin(record), isPeer: isPeer(record),
            isCounted: read.has(record.name), rate: record.gflop_per_s * 1e9,
            unit: isPeer(record) ? null : findRowUnit(app, record.name),
            intensity: read.has(record.name) ? flops / read.get(record.name) : once,
            isRight: record.is_right}));
}
