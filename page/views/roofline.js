// This view shows tile sizes on the roofline: what a tile asks of memory and of a multiprocessor,
// and how far it can get on a chip.
import {explainMeasured} from '../facts/bench.js';
import {legend} from '../parts/chart.js';
import {formatBytes, formatCount, formatRate, formatShare, formatTime} from '../parts/format.js';
import {LIMITERS} from '../facts/model.js';
import {drawRoofline} from '../pictures/roofline_picture.js';
import {findCrossover, listUnits} from '../facts/units.js';
import {findRegisters, findRow, listBlockTiles, listMeasuredPoints, listPredicted,
        listRegisterTiles} from '../facts/roofline_points.js';

// LOOKS says how each kind of point is marked.
const LOOKS = {
    rung: {shape: 'circle', series: 1, size: 4},
    row: {shape: 'triangle', series: 5, size: 5},
    chosen: {shape: 'diamond', series: 2, size: 8},
    counted: {shape: 'cross', series: 3, size: 5, isHollow: true},
    other: {shape: 'square', series: 4, size: 5, isHollow: true},
};
const TILES_NAMED = [1, 2, 4, 8, 16, 32, 64, 128];
const findLook = point => point.isChosen ? LOOKS.chosen : LOOKS[point.kind] ??
    (point.isCounted ? LOOKS.counted : LOOKS.other);

// Measured rungs stand at their predictions, which have their names.
const isMeasuredRung = (app, point) => !point.kind &&
    app.families.some(row => point.name.startsWith(`cuda_${row.family}_`));

// Names a point in few letters: the tiles of the chosen rung by their side.
const nameShort = (app, point) => point.isChosen ? point.name :
    isMeasuredRung(app, point) ? '' :
    point.family === app.state.kernel
        ? TILES_NAMED.includes(point.tile) ? `T = ${point.tile}` : '' :
    point.family ? point.family.replaceAll('_', ' ') :
    point.name.replace(/^cuda_/, '').replace(/_sm\d+a?_fp32_/, ' ');

const writeRoof = ({peak, ridge}) =>
    `${formatCount(peak / 1e12)} TFLOP/s, ridge ${formatCount(ridge)}`;

// Returns the roofs that are drawn: of the FP32 units, of every unit that a point uses, and of the
// tensor cores on 16-bit elements.
const listRoofs = (app, points) => listUnits(app, app.findChip(app.state.chip)).filter(
    unit => ['fma', 'mma'].includes(unit.id) || points.some(point => point.unit === unit.id));

function drawChart(app, points, width) {
    const isOfNote = point => point.isChosen || point.isPlanned || point.isPeer;
    const drawing = drawRoofline(app.svg, {
        label: `Roofline of ${app.state.chip}: rate over intensity`, width, height: 480,
        roofs: listRoofs(app, points).map(unit => ({...unit, figures: writeRoof(unit)})),
        points: points.map(point => ({...point, look: findLook(point),
            name: nameShort(app, point), isFirst: isOfNote(point),
            title: `${point.name}: ${formatRate(point.rate)} ` +
                   `${point.kind ? 'predicted' : 'measured'}`}))});
    const has = look => points.some(point => findLook(point) === look);
    return app.html('div', {}, [drawing, legend(app, [
        {look: LOOKS.rung, text: 'predicted, a rung of the ladder'},
        {look: LOOKS.row, text: 'predicted, the planner\'s choice'},
        {look: LOOKS.chosen, text: 'predicted, the tile of the sliders'},
        {look: LOOKS.counted, text: 'measured, a kernel of this library'},
        {look: LOOKS.other, text: 'measured, libraries: placed at A, B and D moved once'},
    ].filter(({look}) => has(look)).map(({look, text}) => ({...look, size: 5, text})))]);
}

const listRows = (predicted, measured) => [
    ...predicted.map(point => [
        point.name + (point.isChosen ? ' (chosen)' : ''), 'predicted', point.intensity,
        point.rate === null ? '-' : point.rate / 1e9, point.sharedBytes, point.threads,
        formatShare(point.occupancy), (point.refusal || point.verdict || point.bound) +
            (point.splitCount > 1 ? `; k in ${point.splitCount} splits, whose partial tiles are ` +
                'read again' : '')]),
    ...measured.map(point => [
        point.name, `measured: ${point.origin}`, point.intensity, point.rate / 1e9, '-', '-', '-',
        point.isRight ? '' : 'WRONG RESULT']),
];

// Says where the point stands, and why it gets no further.
function sayVerdict(point, unit) {
    if (point.refusal)
        return ['not legal', `: ${point.refusal}. No time is predicted for it.`];
    const isLow = point.intensity < unit.ridge;
    const place = `: ${formatCount(point.intensity)} FLOP a byte is ` + (isLow
        ? `below the ridge of ${formatCount(unit.ridge)}: DRAM alone cannot feed the ` +
          `${unit.title}, so what threads ask for must come from caches as well`
        : `not below the ridge of ${formatCount(unit.ridge)}: DRAM can feed the ${unit.title}`);
    const splits = point.splitCount > 1 ? ` k is cut into ${point.splitCount} splits; partial ` +
        'tiles that are read again to be added count as bytes.' : '';
    return [isLow ? 'left of the ridge' : 'right of the ridge', `${place}. ` + (point.limiter
        ? `By the model, ${LIMITERS[point.limiter]} takes longest.`
        : `${point.verdict}.`) + splits];
}

// Describes the tile of the sliders in words and numbers. What the model does not tell is left out.
function describe(app, point, unit) {
    const [head, rest] = sayVerdict(point, unit);
    const known = [
        ['kernel', point.name],
        ['FLOP a byte asked for', point.refusal ? point.intensity || '-' : point.intensity],
        ['shared memory a block', formatBytes(point.sharedBytes)],
        ['threads a block', point.threads],
        ['registers a thread', point.registers],
        ['blocks a multiprocessor', point.blocks],
        ['occupancy', formatShare(point.occupancy) +
            (point.occupancyLimiter ? `, ended by ${point.occupancyLimiter}` : '')],
        ...point.refusal ? [] : [
            ['predicted time (estimate)', formatTime(point.seconds)],
            ['predicted rate (estimate)', formatRate(point.rate)],
            [`share of the peak of its unit (estimate)`, formatShare(point.rate / unit.peak)]],
    ].filter(([, value]) => value !== undefined);
    return [app.html('p', {}, [app.html('strong', {}, head), rest]),
            app.table(['what', {label: 'value', isRight: true}], known)];
}

// Lists the units of the chip, with the tile from which on memory no longer bounds each.
const showUnits = app => app.table(
    ['unit', {label: 'GFLOP/s', format: formatCount}, 'ridge, FLOP a byte', 'crossed by tile T ='],
    listUnits(app, app.findChip(app.state.chip)).map(unit => [
        unit.title, Math.round(unit.peak / 1e9), Math.round(unit.ridge * 10) / 10,
        findCrossover(unit)]));

function makeSliders(app) {
    const find = (list, id) => list.find(one => one.id === id);
    return [
        app.slider({
            key: 'tile', label: 'tile of a block, T',
            values: () => listBlockTiles(app).map(one => one.id),
            read: state => findRow(app)?.name ?? String(state.tile),
            write: id => find(listBlockTiles(app), id).changes,
            format: id => find(listBlockTiles(app), id)?.label ?? id}),
        app.slider({
            key: 'registers', label: 'register tile of a thread',
            values: () => listRegisterTiles(app).map(one => one.id),
            read: () => findRegisters(app),
            write: id => find(listRegisterTiles(app), id).changes}),
    ];
}

export default {
    id: 'roofline',
    title: 'Roofline',
    state: {row: ''},
    mount(root, app) {
        const chart = app.figure('Rate over intensity');
        const verdict = app.html('div', {'aria-live': 'polite', class: 'verdict'});
        const origin = app.html('p', {class: 'hint'});
        const units = app.html('div');
        root.append(
            app.html('p', {class: 'hint'}, 'A tile that is read once serves many products. The ' +
                'larger the tile, the more FLOP a byte; what ends it is room: shared memory, ' +
                'registers, threads. The slanting line is DRAM\'s bandwidth, and each level line ' +
                'the peak of a unit. A point above the slanting line gets bytes from caches.'),
            app.html('div', {class: 'controls'}, makeSliders(app)),
            app.html('div', {class: 'beside chart-beside'}, [
                chart.node, app.html('div', {}, [verdict, app.html('h2', {}, 'Units'), units])]),
            origin);
        const draw = () => {
            const explained = app.explain();
            const predicted = listPredicted(app);
            const measured = listMeasuredPoints(app);
            const points = [...predicted.filter(point => point.rate !== null), ...measured];
            const chosen = predicted.find(point => point.isChosen);
            const chipUnits = listUnits(app, app.findChip(app.state.chip));
            origin.textContent = explainMeasured(app);
            verdict.replaceChildren(...chosen
                ? describe(app, chosen, chipUnits.find(unit => unit.id === chosen.unit))
                : [app.html('p', {role: 'alert', class: 'warn'}, explained.error)]);
            units.replaceChildren(showUnits(app));
            chart.show(points.length && chosen
                    ? drawChart(app, points, app.measureWidth(chart.node, 860))
                    : app.html('p', {class: 'hint'}, 'The model has no kernel at this size.'),
                ['kernel', 'by', 'FLOP/byte', 'GFLOP/s', 'shared bytes a block',
                 'threads a block', 'occupancy', {label: 'verdict', isWide: true}],
                listRows(predicted, measured));
        };
        app.on('change', draw);
        draw();
    },
};
