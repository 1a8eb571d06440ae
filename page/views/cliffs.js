// Cliff map: the rate of a kernel over square sizes n .. n + 64, predicted, and measured where a
// result file has those sizes.
import {isOnGpu, isPeer, listRecords, nameRecord} from '../bench.js';
import {legend, mark, plot} from '../chart.js';
import {formatCount} from '../format.js';
import {predictRate} from '../model.js';

const SPAN = 64;
const SHAPES = ['circle', 'square', 'triangle', 'cross', 'diamond'];

function listMeasured(app, first) {
    return listRecords(app.data).filter(record => record.m === record.n && record.n === record.k &&
        record.m >= first && record.m <= first + SPAN && record.type === 'fp32' &&
        record.layout === 'nn' && isOnGpu(record));
}

// Of each size the quickest kernel, and each library.
function groupMeasured(records) {
    const groups = new Map();
    for (const record of records) {
        const name = isPeer(record) ? nameRecord(record) : 'the quickest kernel, measured';
        const sizes = groups.get(name) ?? groups.set(name, new Map()).get(name);
        if (!(sizes.get(record.m)?.gflop_per_s > record.gflop_per_s))
            sizes.set(record.m, record);
    }
    return groups;
}

export function drawCliffs(app, width) {
    const first = app.state.n;
    const sizes = Array.from({length: SPAN + 1}, (_, i) => first + i);
    const explained = sizes.map(size => app.explain({m: size, n: size, k: size}))
        .map(one => ({size: one.m, rate: one.error || !one.is_legal ? null
            : predictRate(one) / 1e9}));
    const groups = groupMeasured(listMeasured(app, first));
    const known = explained.filter(one => one.rate !== null);
    const rates = [...known.map(one => one.rate),
                   ...[...groups.values()].flatMap(group => [...group.values()])
                       .map(record => record.gflop_per_s), 1];
    const chart = plot({label: `Rate over sizes ${first} to ${first + SPAN}`, width, height: 260,
        x: {label: 'm = n = k', domain: [first, first + SPAN], format: formatCount},
        y: {label: 'GFLOP/s', domain: [0, Math.max(...rates) * 1.05], format: formatCount}});
    for (const {size, rate} of known)
        chart.add(app.svg('path', {d: `M${chart.x(size)} ${chart.y(0)}V${chart.y(rate)}`,
                                   stroke: 'var(--series-1)', 'stroke-width': 3},
                          app.svg('title', {}, `${size}: ${formatCount(rate)} GFLOP/s predicted`)));
    [...groups].forEach(([name, group], i) => {
        for (const [size, record] of group)
            chart.add(mark(SHAPES[i % 5], chart.x(size), chart.y(record.gflop_per_s), {
                series: 2 + i % 4, title: `${name}, ${size}: ${formatCount(record.gflop_per_s)}`}));
    });
    const names = [...groups.keys()];
    return {
        drawing: app.html('div', {}, [chart.node, legend(app, [
            {line: '2 0', series: 1, text: `${app.state.kernel}, predicted`},
            ...names.map((name, i) => ({shape: SHAPES[i % 5], series: 2 + i % 4, text: name}))])]),
        columns: ['size', `${app.state.kernel}, GFLOP/s (estimate)`, ...names],
        rows: explained.map(({size, rate}) => [size, rate ?? 'not legal',
            ...names.map(name => groups.get(name).get(size)?.gflop_per_s ?? '-')]),
        heading: `Cliff map: ${app.state.kernel} at sizes ${first} to ${first + SPAN}`,
    };
}
