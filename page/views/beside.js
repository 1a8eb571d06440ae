// This view puts production and fused kernels beside libraries: for each product in the files it
// shows the error beside the speed.
import {formatError, isFused, isOfSize, isPeer, listMeasured, nameOrigin, nameRecord} from
    '../facts/bench.js';
import {bars} from '../parts/chart.js';
import {formatCount, formatRate} from '../parts/format.js';

const SHOWN_MOST = 10; // the most products that the chart shows

// GROUPS lists the groups of products that can be shown. The first group that has any is the
// default.
const GROUPS = [
    {value: 'size', label: 'of the size above', isIn: app => isOfSize(app.state)},
    {value: 'fused', label: 'with something fused: bias, activation, alpha, beta, scales',
     isIn: () => isFused},
    {value: 'all', label: 'all that were measured', isIn: () => () => true},
];

// Returns [{shape, suffix, kernels, peers}]. The quickest kernel and the quickest library come
// first.
function groupProducts(app, isWanted) {
    const products = new Map();
    for (const record of listMeasured(app, isWanted)) {
        const {shape, suffix} = record;
        if (!products.has(shape))
            products.set(shape, {shape, suffix, kernels: [], peers: []});
        products.get(shape)[isPeer(record) ? 'peers' : 'kernels'].push(record);
    }
    const byRate = (a, b) => b.gflop_per_s - a.gflop_per_s;
    return [...products.values()].map(one => ({
        ...one, kernels: one.kernels.sort(byRate), peers: one.peers.sort(byRate)}));
}

const listGroups = app => GROUPS.filter(
    group => app.records.some(record => record.chip === app.state.chip && group.isIn(app)(record)));

const findGroup = app => {
    const groups = listGroups(app);
    return groups.find(group => group.value === app.state.beside) ?? groups[0];
};

// Returns the quickest kernel, then the libraries.
const listContenders = ({kernels, peers}) => [...kernels.slice(0, 1), ...peers];

const drawProducts = (products, width) => bars({
    label: 'GFLOP/s of kernels beside libraries', width,
    list: products.flatMap(product => listContenders(product).map((record, i) => ({
        name: i === 0 ? `${product.shape}: ${nameRecord(record)}` : nameRecord(record),
        value: record.gflop_per_s, series: isPeer(record) ? 4 : 3, isHatched: isPeer(record),
        text: `${formatRate(record.gflop_per_s * 1e9)}, error ${formatError(record)}` +
              (record.is_right ? '' : ': WRONG RESULT')})))});

const listRows = products => products.flatMap(product => listContenders(product).map(record => [
    product.shape, product.suffix.split(':').filter(Boolean).join(', ') || 'nothing',
    nameRecord(record), record.gflop_per_s,
    product.peers.length ? `${formatCount(record.gflop_per_s / product.peers[0].gflop_per_s)} x`
                         : '-',
    formatError(record),
    record.max_bound_share === null ? '-' : record.max_bound_share.toPrecision(2),
    record.is_right ? 'right' : 'WRONG', nameOrigin(record)]));

export function drawBeside(app) {
    const shown = app.figure('Kernels beside libraries');
    const choice = app.choice({key: 'beside', label: 'products beside libraries',
                               options: () => listGroups(app)});
    const node = app.html('div', {}, [choice, shown.node]);
    function draw(width) {
        const group = findGroup(app);
        node.hidden = !group;
        if (!group)
            return;
        choice.querySelector('select').value = group.value;
        const products = groupProducts(app, group.isIn(app));
        const drawn = products.slice(0, SHOWN_MOST);
        shown.show(drawProducts(drawn, width),
            ['product', 'beyond A B in FP32', 'contender', 'GFLOP/s', 'of the best library',
             'largest error', 'share of the bound', 'result', 'measured in'], listRows(products),
            'Production and fused kernels beside libraries' + (products.length > drawn.length
                ? `: ${drawn.length} of ${products.length} products; the table has all` : ''));
    }
    return {node, draw};
}
