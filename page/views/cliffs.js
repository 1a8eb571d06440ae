// The cliff map shows the rate of a kernel over sizes n .. n + 64, of cubes or along one size. It
// shows predicted rates, and measured ones where a result file has those sizes.
import {isPeer, listMeasured, nameRecord} from '../facts/bench.js';
import {legend, mark, plot} from '../parts/chart.js';
import {formatCount} from '../parts/format.js';
import {predictRate} from '../facts/model.js';

const SPAN = 64;
const SHAPES = ['circle', 'square', 'triangle', 'cross', 'diamond'];
const FAMILIES_MOST = 6; // the most families of sizes that are offered

// SWEEPS lists the sizes that move, by the state's `sweep`.
const SWEEPS = new Map([['cube', ['m', 'n', 'k']], ['m', ['m']], ['n', ['n']], ['k', ['k']]]);
const nameSweep = sweep => sweep === 'cube' ? 'm = n = k' : sweep;
const findSweep = app => SWEEPS.has(app.state.sweep) ? app.state.sweep : 'cube';
const findFirst = (app, sweep) => sweep === 'cube' ? app.state.n : app.state[sweep];

// Returns {m, n, k} with the moving sizes set to `size`.
const place = ({m, n, k}, sweep, size) =>
    ({m, n, k, ...Object.fromEntries(SWEEPS.get(sweep).map(key => [key, size]))});

// Returns the size at which a record lies on the sweep, or null if it lies beside it.
function findSize(record, sweep, sizes) {
    const size = record[SWEEPS.get(sweep)[0]];
    const {m, n, k} = place(sizes, sweep, size);
    return record.m === m && record.n === n && record.k === k ? size : null;
}

// Returns the quickest kernel and each library for each size: {name: {size: record}}.
function groupMeasured(app, sweep, first) {
    const groups = new Map();
    const records = listMeasured(app, record => record.suffix === app.state.products);
    for (const record of records) {
        const size = findSize(record, sweep, app.state);
        if (size === null || size < first || size > first + SPAN)
            continue;
        const name = isPeer(record) ? nameRecord(record) : 'the quickest kernel, measured';
        const sizes = groups.get(name) ?? groups.set(name, new Map()).get(name);
        if (!(sizes.get(size)?.gflop_per_s > record.gflop_per_s))
            sizes.set(size, record);
    }
    return groups;
}

// Cuts sorted sizes into runs of at least two sizes within the span.
function cutRuns(sizes) {
    const runs = [];
    for (const size of sizes) {
        const last = runs[runs.length - 1];
        if (last && size <= last[0] + SPAN)
            last.push(size);
        else
            runs.push([size]);
    }
    return runs.filter(run => run.length > 1);
}

// Returns the families of sizes that the files hold, [{label, state}], those with most sizes first.
function listFamilies(app) {
    const found = new Map();
    for (const record of listMeasured(app, () => true)) {
        for (const sweep of SWEEPS.keys()) {
            const size = record[SWEEPS.get(sweep)[0]];
            if (sweep === 'cube' && findSize(record, sweep, record) === null)
                continue;
            const rest = ['m', 'n', 'k'].filter(key => !SWEEPS.get(sweep).includes(key));
            const key = [sweep, record.suffix, ...rest.map(name => record[name])].join(' ');
            if (!found.has(key))
                found.set(key, {sweep, record, rest, sizes: new Set()});
            found.get(key).sizes.add(size);
        }
    }
    return [...found.values()].flatMap(({sweep, record, rest, sizes}) =>
        cutRuns([...sizes].sort((a, b) => a - b)).map(run => ({
            count: run.length,
            label: `${nameSweep(sweep)} from ${run[0]} to ${run[run.length - 1]}` +
                rest.map(key => `, ${key} = ${record[key]}`).join('') +
                `: ${run.length} sizes${record.suffix ? `, ${record.suffix}` : ''}`,
            state: {...place(record, sweep, run[0]), sweep, products: record.suffix}})))
        .sort((a, b) => b.count - a.count).slice(0, FAMILIES_MOST);
}

// Returns what the model expects of the kernel at hand and of the planner's choice, null where it
// expects nothing.
function predict(app, sizes) {
    const explained = app.explain(sizes);
    const chosen = app.model.choose({...app.state, ...sizes});
    const flops = explained.useful_flops;
    return {error: explained.error,
            rate: explained.error || !explained.is_legal ? null : predictRate(explained) / 1e9,
            planned: explained.error || !chosen.kernel ? null : flops / chosen.predicted_s / 1e9,
            chosen: chosen.kernel};
}

function drawChart(app, {sweep, first, predicted, groups}, width) {
    const rates = [...predicted.flatMap(one => [one.rate ?? 0, one.planned ?? 0]),
                   ...[...groups.values()].flatMap(group => [...group.values()])
                       .map(record => record.gflop_per_s), 1];
    const chart = plot({label: `Rate over ${nameSweep(sweep)} from ${first} to ${first + SPAN}`,
        width, height: 260,
        x: {label: nameSweep(sweep), domain: [first, first + SPAN], format: formatCount},
        y: {label: 'GFLOP/s', domain: [0, Math.max(...rates) * 1.05], format: formatCount}});
    for (const {size, rate} of predicted.filter(one => one.rate))
        chart.add(app.svg('path', {d: `M${chart.x(size)} ${chart.y(0)}V${chart.y(rate)}`,
                                   stroke: 'var(--series-1)', 'stroke-width': 3},
                          app.svg('title', {}, `${size}: ${formatCount(rate)} GFLOP/s predicted`)));
    const line = predicted.filter(one => one.planned)
        .map(({size, planned}) => `${chart.x(size)} ${chart.y(planned)}`).join('L');
    if (line)
        chart.add(app.svg('path', {d: `M${line}`, fill: 'none', stroke: 'var(--series-5)',
                                   'stroke-width': 2, 'stroke-dasharray': '6 3'}));
    [...groups.values()].forEach((group, i) => {
        for (const [size, record] of group)
            chart.add(mark(SHAPES[i % 5], chart.x(size), chart.y(record.gflop_per_s), {
                series: 2 + i % 3, isHollow: i % 2 === 1,
                title: `${nameRecord(record)}, ${size}: ${formatCount(record.gflop_per_s)}`}));
    });
    return chart.node;
}

// Says why there is no chart.
const sayEmpty = ({error}, isPredicted) => isPredicted
    ? error ?? 'The model has no kernel that can run at these sizes.'
    : 'No such product of these sizes was measured; estimates are of FP32 by rows alone.';

function drawLegend(app, names, isPredicted) {
    return legend(app, [
        ...isPredicted ? [
            {line: '3 1', series: 1, text: `${app.state.kernel}, predicted: bars`},
            {line: '6 3', series: 5, text: 'the planner\'s choice, predicted: dashes'}] : [],
        ...names.map((name, i) => ({shape: SHAPES[i % 5], series: 2 + i % 3,
                                    isHollow: i % 2 === 1, text: name}))]);
}

function makeControls(app) {
    const sweep = app.choice({key: 'sweep', label: 'sizes that move', options: () =>
        [...SWEEPS.keys()].map(value => ({
            value, label: value === 'cube' ? 'm = n = k, from n on' : `${value} alone`}))});
    const products = app.choice({key: 'products', label: 'products', options: () =>
        [...new Set(['', ...app.records.map(record => record.suffix)])].map(value => ({
            value, label: value || 'FP32 by rows'}))});
    return app.html('div', {class: 'controls'}, [
        sweep, app.records.some(record => record.suffix) ? products : []].flat());
}

export function drawCliffs(app) {
    const shown = app.figure('Cliff map');
    const families = app.html('div', {class: 'controls families', role: 'group',
                                      'aria-label': 'families of sizes that were measured'});
    const node = app.html('div', {}, [makeControls(app), shown.node, families]);
    function draw(width) {
        const sweep = findSweep(app);
        const first = findFirst(app, sweep);
        const isPredicted = app.state.products === '';
        const groups = groupMeasured(app, sweep, first);
        const names = [...groups.keys()];
        const predicted = Array.from({length: SPAN + 1}, (_, i) => ({size: first + i,
            ...isPredicted ? predict(app, place(app.state, sweep, first + i)) : {}}));
        const isEmpty = !names.length && !predicted.some(one => one.rate || one.planned);
        shown.show(isEmpty ? app.html('p', {class: 'hint'}, sayEmpty(predicted[0], isPredicted))
            : app.html('div', {}, [
                drawChart(app, {sweep, first, predicted, groups}, width),
                drawLegend(app, names, isPredicted)]),
            [nameSweep(sweep), `${app.state.kernel}, GFLOP/s (estimate)`,
             'the planner\'s choice, GFLOP/s (estimate)', 'the planner\'s choice', ...names],
            predicted.map(({size, rate, planned, chosen}) => [size,
                rate ?? (isPredicted ? 'not legal' : '-'), planned ?? '-', chosen ?? '-',
                ...names.map(name => groups.get(name).get(size)?.gflop_per_s ?? '-')]),
            `Cliff map: ${isPredicted ? app.state.kernel : app.state.products} at ` +
            `${nameSweep(sweep)} = ${first} to ${first + SPAN}`);
        const held = listFamilies(app);
        families.hidden = !held.length;
        families.replaceChildren(app.html('p', {class: 'hint'}, 'Measured sizes in the files:'),
            ...held.map(one => app.button(one.label, () => app.set(one.state))));
    }
    return {node, draw};
}
