// This view shows the plan: every kernel that could form the product, what was predicted, what was
// measured, and why each lost. The planner is the library's own, for any chip; the processor's plan
// was made where the page was written.
import {bars} from '../parts/chart.js';
import {explainMeasured, isOfSize, isPeer, isPlain, listMeasured, listMeasuredOnCpu, nameOrigin,
        nameRecord} from '../facts/bench.js';
import {formatCount, formatTime} from '../parts/format.js';
import {LIMITERS} from '../facts/model.js';

const SHOWN_MOST = 12; // the most kernels of a chart
const PREDICTED = [{label: 'predicted (estimate)', isRight: true}];
const MEASURED = [{label: 'measured', isRight: true}, {label: 'of the prediction', isRight: true},
                  'measured in'];

const isElsewhere = one => one.refusal === 'other_device';

// Sorts the chosen kernel first, then the legal ones by their time, then the others.
function sortCandidates(list) {
    return [...list].sort((a, b) => b.is_chosen - a.is_chosen || b.is_legal - a.is_legal ||
        (a.is_legal ? a.predicted_s - b.predicted_s : a.kernel.localeCompare(b.kernel)));
}

// Says what takes longest in a rung of the ladder. Returns '' for other kernels.
function sayLimiter(app, sizes, {kernel, is_legal: isLegal}) {
    const explained = isLegal ? app.model.explain({...app.state, ...sizes, kernel, tile: 0}) : {};
    return explained.limiter ? `; ${LIMITERS[explained.limiter]} takes longest` : '';
}

// Returns the cells that a record adds to a row; one row or all rows may have no record.
const makeMeasured = (times, record, predicted) => !times.size ? [] : !record ? ['-', '-', '-'] :
    [formatTime(record.median_s), predicted ? `${formatCount(record.median_s / predicted)} x` : '-',
     nameOrigin(record)];

// Returns a row for a candidate: its times, and the planner's words why it lost.
function makeRow(app, plan, one, times) {
    const record = times.get(one.kernel);
    const best = times.get(plan.candidates.find(other => other.is_chosen)?.kernel);
    const share = record && best ? record.median_s / best.median_s : 1;
    return [one.kernel, one.is_legal ? formatTime(one.predicted_s) : '-',
            ...makeMeasured(times, record, one.is_legal && one.predicted_s),
            (one.is_chosen ? 'chosen' : one.reason) + sayLimiter(app, plan, one) +
            (share < 1 ? `; measured, it takes ${formatCount(share)} of the chosen one's time`
                       : '')];
}

function drawPlan(plan, list, peers, times, width) {
    const shown = list.filter(one => one.is_legal).slice(0, SHOWN_MOST).flatMap(one => {
        const series = one.is_chosen ? 2 : 1;
        const record = times.get(one.kernel);
        return [{name: `${one.kernel}${one.is_chosen ? ': chosen' : ''}`, value: one.predicted_s,
                 text: `${formatTime(one.predicted_s)} predicted`, series, isHatched: true},
                ...record ? [{name: `the same, ${nameOrigin(record)}`, series,
                              value: record.median_s,
                              text: `${formatTime(record.median_s)} measured`}] : []];
    });
    return bars({label: `Predicted and measured times of ${plan.shape}`, width,
                 list: shown.concat(peers.map(record => (
                     {name: `${nameRecord(record)}, ${nameOrigin(record)}`,
                      value: record.median_s, series: 4,
                      text: `${formatTime(record.median_s)} measured`})))});
}

// Groups kernels that cannot run by their refusal: [{refusal, list}], the largest group first.
function groupRefused(list) {
    const groups = new Map();
    for (const one of list)
        groups.set(one.refusal, [...groups.get(one.refusal) ?? [], one]);
    return [...groups].map(([refusal, group]) => ({refusal, list: group}))
        .sort((a, b) => b.list.length - a.list.length);
}

// Shows the kernels that cannot run, folded by their reason.
function showRefused(app, list) {
    if (!list.length)
        return [];
    return [app.html('h3', {}, `${list.length} kernels cannot run, by their reason`),
        ...groupRefused(list).map(({refusal, list: group}) => app.html('details', {}, [
            app.html('summary', {}, [`${group.length} `, app.html('b', {},
                refusal.replaceAll('_', ' ')), group.length > 1 ? `, for example: ` : ': ',
                group[0].reason]),
            app.table(['kernel', {label: 'verdict', isWide: true}],
                      group.map(one => [one.kernel, one.reason]))]))];
}

// Shows a plan {shape, m, n, k, candidates} with `measured`, the records of it.
function showPlan(app, plan, measured, caption, root) {
    const list = sortCandidates(plan.candidates.filter(one => !isElsewhere(one)));
    const legal = list.filter(one => one.is_legal);
    const times = new Map(measured.map(record => [record.name, record]));
    const peers = measured.filter(isPeer);
    const shown = app.figure('');
    shown.show(legal.length + peers.length ? drawPlan(plan, list, peers, times,
                                                      app.measureWidth(root, 960))
                                           : app.html('p', {class: 'hint'}, 'No kernel can run.'),
        ['kernel', ...PREDICTED, ...times.size ? MEASURED : [], {label: 'verdict', isWide: true}],
        legal.map(one => makeRow(app, plan, one, times)).concat(peers.map(record => [
            nameRecord(record), '-', ...makeMeasured(times, record),
            'a library, measured beside'])),
        `${caption}: ${legal.length} kernels can run` +
        (legal.length > SHOWN_MOST ? `, the quickest ${SHOWN_MOST} of them drawn` : ''));
    root.append(shown.node, ...showRefused(app, list.filter(one => !one.is_legal)));
}

function showChip(app, root) {
    const {m, n, k, chip} = app.state;
    const {title} = app.findChip(chip);
    root.append(app.html('h2', {}, `${m} x ${n} x ${k} on ${title}`),
        app.html('p', {class: 'hint'}, 'Planned by the library\'s planner in this page, for the ' +
            'sizes and the chip above: no such GPU is needed. ' + explainMeasured(app)));
    const candidates = app.model.listCandidates(app.state);
    showPlan(app, {shape: `${m}x${n}x${k}`, m, n, k, candidates},
             listMeasured(app, record => isPlain(record) && isOfSize(app.state)(record)), title,
             root);
}

function showProcessor(app, plan, root) {
    const {m, n, k} = app.state;
    root.append(app.html('h2', {}, `${plan.m} x ${plan.n} x ${plan.k} on the processor`));
    if (!isOfSize(app.state)(plan))
        root.append(app.html('p', {class: 'hint processor'},
            `Planned for ${plan.shape} when the page was written; tilegemm report ` +
            `${m}x${n}x${k} plans the size above.`));
    root.append(app.html('p', {class: 'hint'}, 'Predicted times come from figures of a ' +
        'Zen 5: they rank kernels, and were not measured on this processor.'));
    showPlan(app, plan, listMeasuredOnCpu(app, plan), `${plan.device.name}, ${plan.device.isa}`,
             root);
}

export default {
    id: 'plan',
    title: 'The plan',
    mount(root, app) {
        const shown = app.html('div');
        root.append(shown);
        const draw = () => {
            shown.replaceChildren();
            showChip(app, shown);
            if (app.data.candidates)
                showProcessor(app, app.data.candidates, shown);
        };
        app.on('change', draw);
        draw();
    },
};
