// This view counts reads: bytes at each level of memory from the model, and beside them what the
// simulator and a GPU's counters counted.
import {findChip} from '../facts/bench.js';
import {bars} from '../parts/chart.js';
import {findCrossover, findUnit, listUnits} from '../facts/units.js';
import {formatBytes, formatCount} from '../parts/format.js';

const SECTOR_BYTES = 32;
const SIZES = [4, 8, 16, 31, 32, 48, 64, 100, 128, 250, 256, 512, 1000, 1024, 2048, 4095, 4096,
               8192];

// Each level says how to read its value from the model's answer and from the simulator's (null if
// it was not counted).
const LEVELS = [
    {title: 'Asked for by threads', isExact: true,
     hint: 'Every load as the source writes it, caches not considered.',
     read: one => one.global_read_bytes, readCounted: one => one.global_read_bytes ?? null},
    {title: 'Moved in sectors', isExact: true,
     hint: 'A warp moves whole sectors of 32 bytes: less than threads ask for where lanes share ' +
           'what they read, more where they use a part of a sector.',
     read: one => SECTOR_BYTES * one.global_load_sectors,
     readCounted: one => one.global_load_sectors === null ? null
         : SECTOR_BYTES * one.global_load_sectors},
    {title: 'Read from DRAM', isExact: false,
     hint: 'An estimate: what the chip\'s L2 cannot keep from one wave of blocks to the next ' +
           'comes again.',
     read: one => one.dram_read_bytes, readCounted: one => one.dram_read_bytes ?? null},
];

const isCube = ({m, n, k}) => m === n && n === k;

// The slider has no place for three sizes that differ; it then stands at the cube with about as
// many products.
const findNearest = app => list => {
    const {m, n, k} = app.state;
    const side = Math.cbrt(m * n * k);
    const nearest = [...list].sort((a, b) => Math.abs(a - side) - Math.abs(b - side))[0];
    return list.indexOf(nearest);
};

const saySizes = ({state: {m, n, k}}) =>
    `the sizes differ, ${m} x ${n} x ${k}; moving this makes them equal`;

function findCounts(list, explained) {
    const {m, n, k, kernel} = explained;
    return list.find(one => one.kernel === kernel && one.m === m && one.n === n && one.k === k);
}

// Returns what the simulator counted at this size. If it ran with only a part of k (isCut), the
// counts are those of the whole k.
function findSimulated(app, explained) {
    const {m, n, k, kernel} = explained;
    const cut = app.data.simulations.find(one => one.kernel === kernel && one.m === m &&
                                                 one.n === n && one.whole_k?.k === k);
    return cut ? {...cut, ...cut.whole_k, isCut: true, cutK: cut.k}
               : findCounts(app.data.simulations, explained);
}

// Returns what was counted on the chip of the state.
const listCounted = ({data, state, model}) => data.counted.filter(({gpu, gpu_title: title}) =>
    (title ? findChip(model.chips, title) : gpu) === state.chip);

// Returns the naive and the tiled kernel with the slider's side (32 if that is too large for them),
// the register tiles, and the chosen kernel.
function listKernels(app) {
    const {tile, kernel} = app.state;
    const side = app.listTiles('edges').includes(tile) && app.explain({kernel: 'edges'}).is_legal
        ? tile : 32;
    const wanted = [{kernel: 'naive', tile: side}, {kernel: 'edges', tile: side},
                    {kernel: 'register_column', tile: 0}, {kernel: 'register_tile', tile: 0}];
    const others = wanted.filter(one => one.kernel !== kernel);
    return [...others.slice(0, 1), {kernel, tile}, ...others.slice(1)]
        .map(one => app.explain(one)).filter(one => !one.error)
        .sort((a, b) => a.ladder_rung - b.ladder_rung);
}

const nameKernel = one => `${one.family} ${one.tile_rows} x ${one.tile_cols}`;

// Writes "; simulated 8 MiB" if there is a count.
function sayCounted(level, name, counted) {
    const bytes = counted && level.readCounted(counted);
    return Number.isFinite(bytes) ? `; ${name} ${formatBytes(bytes)}` : '';
}

function drawLevel(app, level, kernels, width) {
    const list = kernels.map(one => ({
        name: nameKernel(one) + sayCounted(level, 'simulated', findSimulated(app, one)) +
            sayCounted(level, 'counted', findCounts(listCounted(app), one)),
        value: level.read(one), text: formatBytes(level.read(one)),
        series: one.family === app.state.kernel ? 2 : 1, isHatched: !level.isExact}));
    return app.html('div', {}, [
        app.html('p', {class: 'hint'}, level.hint),
        bars({label: `${level.title}, bytes by kernel`, width, list})]);
}

function listRows(app, level, kernels) {
    const least = kernels.length ? level.read(kernels[0]) : 0;
    const show = one => one ? level.readCounted(one) ?? '-' : '-';
    return kernels.map(one => [
        nameKernel(one), level.read(one), show(findSimulated(app, one)),
        show(findCounts(listCounted(app), one)), `${formatCount(least / level.read(one))} x`]);
}

function listShared(app, kernels) {
    return kernels.map(one => {
        const simulated = findSimulated(app, one);
        return [nameKernel(one), one.shared_load_requests, simulated?.shared_load_requests ?? '-',
                one.bank_conflicts, simulated?.bank_conflicts ?? '-', one.barriers,
                simulated?.barriers ?? '-', one.reuse];
    });
}

// Says what was simulated at this size, and so what the figures stand for.
function saySimulated(app, chosen) {
    const simulated = findSimulated(app, chosen);
    const {m, n, k} = app.state;
    if (!simulated)
        return 'This size and tile are not among those that were simulated for the page: ' +
            `tilegemm simulate ${m}x${n}x${k} --kernel ${chosen.family} --tile ` +
            `${chosen.tile_rows} counts them.`;
    const blocks = simulated.is_exact ? 'All blocks of this size were simulated' :
        `Of this size ${formatCount(simulated.simulated_block_count)} blocks were simulated, ` +
        'and their counts scaled up' + (chosen.tile_rows % 8 ?
            ' (about: the sectors of a block depend on where it lies)' : '');
    return simulated.isCut ? `${blocks}; k was cut to ${formatCount(simulated.cutK)}, and to ` +
        `less, and the counts continued to ${formatCount(k)}: every further step counts the same.`
        : `${blocks}.`;
}

function say(app, kernels) {
    const chosen = kernels.find(one => one.family === app.state.kernel);
    const note = chosen.is_legal ? saySimulated(app, chosen) :
        `It cannot run: ${chosen.reason}.`;
    return `${nameKernel(chosen)} reads ${formatCount(chosen.global_read_elems)} elements, ` +
        `${formatCount(chosen.reads_saved_elems)} fewer than the textbook loop: each element it ` +
        `reads serves ${formatCount(chosen.reuse)} times as many products. ${note}`;
}

// Shows the reads and the intensities without tiles and with the kernel at hand, and the tile from
// which on DRAM could feed the kernel's units.
function showCounters(app) {
    const naive = app.explain({kernel: 'naive', tile: 16});
    const chosen = app.explain();
    const id = findUnit(app.families.find(row => row.family === app.state.kernel));
    const units = listUnits(app, app.findChip(app.state.chip));
    const unit = units.find(one => one.id === id) ?? units[0];
    const facts = chosen.error ? [] : [
        ['naive reads, elements', formatCount(naive.global_read_elems)],
        [`reads of ${nameKernel(chosen)}`, formatCount(chosen.global_read_elems)],
        ['naive FLOP a byte', formatCount(naive.flop_per_byte)],
        ['FLOP a byte with this tile', formatCount(chosen.flop_per_byte)],
        [`ridge of the ${unit.title}`, `${formatCount(unit.ridge)} FLOP a byte`],
        ['crossed by tile T =', formatCount(findCrossover(unit))],
        ['shared memory a block', formatBytes(chosen.shared_bytes)]];
    return app.html('dl', {class: 'counters facts'}, facts.map(([label, value]) => app.html(
        'div', {}, [app.html('dt', {}, label), app.html('dd', {}, value)])));
}

export default {
    id: 'reads',
    title: 'Reads counted',
    mount(root, app) {
        const figures = LEVELS.map(level => app.figure(level.title));
        const shared = app.html('div');
        const counters = app.html('div');
        const summary = app.html('p', {'aria-live': 'polite', class: 'verdict'});
        root.append(
            app.html('div', {class: 'controls'}, [
                app.slider({key: 'size', label: 'm = n = k:', values: () => SIZES,
                            read: state => isCube(state) ? state.m : NaN, locate: findNearest(app),
                            write: size => ({m: size, n: size, k: size}),
                            format: size => isCube(app.state) ? formatCount(size) : saySizes(app)}),
                app.slider({key: 'tile', label: 'tile side T',
                            values: () => app.listTiles(app.state.kernel),
                            format: tile => `${tile} x ${tile}`}),
            ]),
            counters, summary, app.html('div', {class: 'beside'}, figures.map(one => one.node)),
            app.html('h2', {}, 'Shared memory'), shared);
        const draw = () => {
            const kernels = listKernels(app);
            const width = app.measureWidth(figures[0].node, 440);
            counters.replaceChildren(showCounters(app));
            summary.textContent = app.explain().error ?? say(app, kernels);
            LEVELS.forEach((level, i) => figures[i].show(
                kernels.length ? drawLevel(app, level, kernels, width) : app.html('p'),
                ['kernel', level.isExact ? 'model, bytes' : 'model, bytes (estimate)', 'simulated',
                 `counted on ${app.findChip(app.state.chip).title}`, 'less than naive'],
                listRows(app, level, kernels)));
            shared.replaceChildren(app.table(
                ['kernel', 'load requests', 'simulated', 'bank conflicts', 'simulated', 'barriers',
                 'simulated', 'reuse'], listShared(app, kernels)));
        };
        app.on('change', draw);
        draw();
    },
};
