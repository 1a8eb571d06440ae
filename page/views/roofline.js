// Tile size on the roofline: what a tile asks of memory and of a multiprocessor, and how far it can
// get on a chip.
import {isOnGpu, isPeer, listMeasured, nameRecord} from '../bench.js';
import {legend, mark, plot} from '../chart.js';
import {formatBytes, formatCount, formatRate, formatShare, formatTime} from '../format.js';
import {predictRate} from '../model.js';

function nameTile(explained) {
    return `${explained.family} ${explained.tile_rows} x ${explained.tile_cols}`;
}

const countSums = row => row.thread_rows * row.thread_cols;

// Register tiles of the ladder, and the family that begins with one (from rung 4 on, which takes
// every size).
function listRegisterTiles(app) {
    const tiles = new Map();
    for (const row of app.families.filter(one => one.ladder_rung >= 4)) {
        if (!tiles.has(countSums(row)))
            tiles.set(countSums(row), row);
    }
    return tiles;
}

// Of every family one tile, of the chosen family all.
function listPoints(app) {
    const points = [];
    for (const {family} of app.families) {
        const tiles = app.listTiles(family);
        const shown = family === app.state.kernel ? tiles : tiles.slice(-1);
        for (const tile of tiles.includes(16) && family !== app.state.kernel ? [16] : shown) {
            const explained = app.explain({kernel: family, tile});
            const isChosen = family === app.state.kernel && tile === app.state.tile;
            if (!explained.error && (explained.is_legal || isChosen))
                points.push({explained, isChosen});
        }
    }
    return points;
}

// Measured kernels stand at the intensity that the model counts for them, others at that of reading
// A and B and writing D once.
function listMeasuredPoints(app) {
    const bytes = app.model.countOperandBytes(app.state);
    return listMeasured(app.data, app.state)
        .filter(record => isOnGpu(record) && !record.name.startsWith('cpu_')).map(record => {
        const explained = app.model.explain({...app.state, kernel: record.name, tile: 0});
        const isCounted = !isPeer(record) && !explained.error;
        return {record, isCounted, rate: record.gflop_per_s * 1e9,
                intensity: isCounted ? explained.flop_per_byte
                                     : app.explain().useful_flops / bytes};
    });
}

// Domains that hold the points and the roof's edge.
function makeAxes(points, measured, chip) {
    const rates = [...points.map(point => predictRate(point.explained)),
                   ...measured.map(one => one.rate)];
    const intensities = [...points.map(point => point.explained.flop_per_byte),
                         ...measured.map(one => one.intensity), chip.ridge_flop_per_byte * 8];
    return {
        x: {label: 'FLOP a byte that threads ask for', isLog: true, format: formatCount,
            domain: [Math.min(...intensities) / 2, Math.max(...intensities) * 1.5]},
        y: {label: 'GFLOP/s', isLog: true, format: value => formatCount(value / 1e9),
            domain: [Math.min(...rates) / 2,
                     Math.max(chip.peak_flop_per_s * 2, Math.max(...rates) * 1.5)]},
    };
}

function drawRoof(app, chart, chip) {
    const slope = chip.peak_flop_per_s / chip.ridge_flop_per_byte;
    const [[low, high], [bottom]] = [chart.x.domain(), chart.y.domain()];
    const start = Math.max(low, bottom / slope);
    const path = [[start, slope * start], [chip.ridge_flop_per_byte, chip.peak_flop_per_s],
                  [high, chip.peak_flop_per_s]]
        .map(([intensity, rate]) => `${chart.x(intensity)} ${chart.y(rate)}`).join('L');
    chart.add(app.svg('path', {d: `M${path}`, fill: 'none', stroke: 'var(--text)',
                               'stroke-width': 2}),
        app.svg('text', {x: chart.x(high), y: chart.y(chip.peak_flop_per_s) - 6,
                         'text-anchor': 'end'}, `peak ${formatRate(chip.peak_flop_per_s)}`));
}

function drawChart(app, points, measured, width) {
    const chip = points[0].explained;
    const chart = plot({label: `Roofline of ${app.state.chip}: rate over intensity`, width,
                        ...makeAxes(points, measured, chip)});
    drawRoof(app, chart, chip);
    for (const {explained, isChosen} of points) {
        const px = chart.x(explained.flop_per_byte), py = chart.y(predictRate(explained));
        chart.add(mark(isChosen ? 'diamond' : 'circle', px, py, {
            series: isChosen ? 2 : 1, size: isChosen ? 8 : 4,
            title: `${nameTile(explained)}: ${formatRate(predictRate(explained))} predicted`}));
        if (isChosen)
            chart.add(app.svg('text', {x: px, y: py - 14, 'text-anchor': 'middle'},
                              nameTile(explained)));
    }
    for (const {record, rate, intensity, isCounted} of measured)
        chart.add(mark(isCounted ? 'cross' : 'square', chart.x(intensity), chart.y(rate), {
            series: isCounted ? 3 : 4, size: 5, isHollow: true,
            title: `${nameRecord(record)}: ${formatRate(rate)} measured`}));
    return app.html('div', {}, [chart.node, legend(app, [
        {shape: 'circle', series: 1, text: 'predicted, a kernel of the ladder'},
        {shape: 'diamond', series: 2, text: 'predicted, the chosen one'},
        ...measured.length ? [
            {shape: 'cross', series: 3, text: 'measured, a kernel of the ladder'},
            {shape: 'square', series: 4, isHollow: true,
             text: 'measured, other kernels and libraries: placed at A, B and D moved once'}] : [],
    ])]);
}

function listRows(app, points, measured) {
    return [
        ...points.map(({explained, isChosen}) => [
            nameTile(explained) + (isChosen ? ' (chosen)' : ''), 'predicted',
            explained.flop_per_byte, predictRate(explained) / 1e9,
            explained.shared_bytes, explained.threads_per_block, formatShare(explained.occupancy),
            explained.is_legal ? explained.bound : explained.reason]),
        ...measured.map(({record, intensity}) => [
            nameRecord(record), `measured, ${record.processor}`, intensity, record.gflop_per_s, '-',
            '-', '-', record.is_right ? '' : 'wrong result']),
    ];
}

function describe(app, explained) {
    if (explained.error)
        return [app.html('p', {role: 'alert', class: 'warn'}, explained.error)];
    const isLow = explained.bound === 'memory';
    return [
        app.html('p', {}, [
            app.html('strong', {}, explained.is_legal ? `${explained.bound} bound` : 'not legal'),
            explained.is_legal
                ? `: ${formatCount(explained.flop_per_byte)} FLOP a byte is ` +
                  `${isLow ? 'below' : 'not below'} the ridge of ` +
                  `${formatCount(explained.ridge_flop_per_byte)}. What takes longest by the ` +
                  `model: ${explained.limiter}.`
                : `: ${explained.reason}.`]),
        app.table(['what', 'value'], [
            ['FLOP a byte asked for', explained.flop_per_byte],
            ['shared memory a block', formatBytes(explained.shared_bytes)],
            ['threads a block', explained.threads_per_block],
            ['registers a thread', explained.registers_per_thread],
            ['blocks a multiprocessor', explained.resident_blocks],
            ['occupancy', `${formatShare(explained.occupancy)}, ` +
                          `ended by ${explained.occupancy_limiter}`],
            ['predicted time (estimate)', formatTime(explained.predicted_s)],
            ['predicted rate (estimate)', formatRate(predictRate(explained))],
            ['share of the peak (estimate)', formatShare(explained.peak_share)],
        ]),
    ];
}

export default {
    id: 'roofline',
    title: 'Roofline',
    mount(root, app) {
        const chart = app.figure('Rate over intensity');
        const verdict = app.html('div', {'aria-live': 'polite', class: 'verdict'});
        const registerTiles = listRegisterTiles(app);
        root.append(
            app.html('p', {class: 'hint'}, 'A tile that is read once serves many products. The ' +
                'larger the tile, the more FLOP a byte; what ends it is room: shared memory, ' +
                'registers, threads. The line is DRAM\'s bandwidth and the peak: kernels above ' +
                'it live on caches.'),
            app.html('div', {class: 'controls'}, [
                app.slider({key: 'tile', label: 'tile side T',
                            values: () => app.listTiles(app.state.kernel),
                            format: tile => `${tile} x ${tile}`}),
                app.slider({
                    label: 'elements a thread (register tile)', key: 'registers',
                    values: () => [...registerTiles.keys()],
                    read: state => countSums(app.families.find(row => row.family === state.kernel)),
                    write: count => ({kernel: registerTiles.get(count).family}),
                    format: count => `${count}: ${registerTiles.get(count).thread_rows} x ` +
                        registerTiles.get(count).thread_cols}),
            ]),
            app.html('div', {class: 'beside'}, [chart.node, verdict]));
        const draw = () => {
            const points = listPoints(app);
            const measured = listMeasuredPoints(app);
            verdict.replaceChildren(...describe(app, app.explain()));
            chart.show(points.length
                    ? drawChart(app, points, measured, app.measureWidth(root, 620))
                    : app.html('p', {class: 'hint'}, 'The model has no kernel at this size.'),
                ['kernel', 'by', 'FLOP/byte', 'GFLOP/s', 'shared bytes a block',
                 'threads a block', 'occupancy', 'bound'], listRows(app, points, measured));
        };
        app.on('change', draw);
        draw();
    },
};
