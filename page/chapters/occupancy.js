// Chapter: blocks share a multiprocessor, until one of its resources runs out.
import {bars} from '../parts/chart.js';
import {formatBytes, formatCount, formatShare, formatTime} from '../parts/format.js';
import {drawWarps} from '../pictures/warps_picture.js';

const WARP_THREADS = 32;
const LARGE = 4096; // side of a product that has a block for every place
const EDGES_TILES = [4, 8, 16, 32];
const MORE_SUMS = ['register_column', 'register_tile'];

const listCases = app => [
    ...EDGES_TILES.map(tile => ({kernel: 'edges', tile})),
    ...MORE_SUMS.map(kernel => ({kernel, tile: app.findRowTile(kernel)}))];

// Returns what the resident blocks take of each resource: {name, taken, whole, format}. The names
// are those of the model's occupancy_limiter.
function listResources(told, chip) {
    const threads = told.resident_blocks * told.warps_per_block * WARP_THREADS;
    return [
        {name: 'threads', taken: threads, whole: chip.threads_per_sm, format: formatCount},
        {name: 'registers', taken: threads * told.registers_per_thread,
         whole: chip.registers_per_sm, format: formatCount},
        {name: 'shared memory', taken: told.resident_blocks * told.shared_bytes,
         whole: chip.shared_bytes_per_sm, format: formatBytes},
        {name: 'blocks', taken: told.resident_blocks, whole: chip.blocks_per_sm,
         format: formatCount},
    ];
}

const drawResources = (told, resources, width) => bars({
    label: 'What the resident blocks take of a multiprocessor', width, most: 1,
    list: resources.map(({name, taken, whole, format}) => ({
        name, value: taken / whole, series: name === told.occupancy_limiter ? 2 : 1,
        text: `${format(taken)} of ${format(whole)}` +
            (name === told.occupancy_limiter ? ': no more blocks' : '')}))});

export default {
    title: 'Occupancy: blocks side by side',
    idea: ['A multiprocessor holds several blocks at once: while one waits for memory or at a ' +
           'barrier, another computes. The first resource that runs out limits how many. ' +
           'Occupancy is the share of its warp slots in use. It is not the goal: kernels with ' +
           'more sums per thread have a lower occupancy and are still faster.'],
    state: {resident: 'edges 16'},
    closer: {view: 'roofline', label: 'See the occupancy of every tile'},
    mount(app, {controls, picture, showFacts}) {
        const cases = new Map(listCases(app).map(one => [`${one.kernel} ${one.tile}`, one]));
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(
            app.slider({key: 'resident', label: 'a block of:', values: () => [...cases.keys()],
                        format: id => `${id} x ${cases.get(id)?.tile ?? ''}`}),
            app.choice({key: 'chip', label: 'chip', options: () => app.model.chips.map(
                chip => ({value: chip.name, label: chip.title}))}));
        return () => {
            const {kernel, tile} = cases.get(app.state.resident) ?? cases.values().next().value;
            const chip = app.findChip(app.state.chip);
            const {m, n, k} = app.ownProduct;
            const large = app.explain({m: LARGE, n: LARGE, k: LARGE, kernel, tile});
            const own = app.explain({m, n, k, kernel, tile});
            const resources = listResources(large, chip);
            const width = app.measureWidth(picture, 960);
            shown.show(app.html('div', {}, [
                drawWarps(app.svg, {
                    placeCount: chip.threads_per_sm / WARP_THREADS,
                    blockCount: large.resident_blocks, warpCount: large.warps_per_block,
                    label: `${large.resident_blocks} blocks of ${large.warps_per_block} warps`},
                    width),
                drawResources(large, resources, width)]),
                ['resource', 'taken', 'of'],
                resources.map(({name, taken, whole}) => [name, taken, whole]),
                `Places for warps in a multiprocessor of ${chip.title}, each with the number of ` +
                'the block in it; below, what these blocks take of it');
            const time = told => told.is_legal ? formatTime(told.predicted_s) : '-';
            showFacts([['occupancy', formatShare(large.occupancy)],
                       ['blocks a multiprocessor', large.resident_blocks],
                       ['warps a block', large.warps_per_block],
                       [`predicted, ${LARGE} x ${LARGE} x ${LARGE}`, time(large)],
                       [`predicted, your ${m} x ${n} x ${k}`, time(own)],
                       ['its blocks fill the GPU', `${formatCount(own.wave_count)} x`]]);
        };
    },
};
