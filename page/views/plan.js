// The plan: every kernel that could form the product, what was predicted, what was measured, and
// why each lost.
import {bars} from '../chart.js';
import {isOnGpu, isPeer, listMeasured, nameRecord} from '../bench.js';
import {formatCount, formatTime} from '../format.js';

const isElsewhere = one => one.reason.startsWith('runs on ');

// The chosen one, then the legal ones by their time, then the others.
function sortCandidates(list) {
    return [...list].sort((a, b) => b.is_chosen - a.is_chosen || b.is_legal - a.is_legal ||
        (a.is_legal ? a.predicted_s - b.predicted_s : a.kernel.localeCompare(b.kernel)));
}

function findTime(measured, kernel) {
    const times = measured.filter(record => record.name === kernel)
        .map(record => record.median_s);
    return times.length ? Math.min(...times) : null;
}

function showDevice(app, plan, root, width) {
    const kind = plan.device.device.split(':')[0];
    const measured = listMeasured(app.data, plan).filter(one => one.device.startsWith(kind));
    const known = sortCandidates(plan.candidates.filter(one => !isElsewhere(one)));
    const legal = known.filter(one => one.is_legal);
    const list = legal.flatMap(one => {
        const time = findTime(measured, one.kernel);
        return [
            {name: `${one.kernel}${one.is_chosen ? ': chosen' : ''}`, value: one.predicted_s,
             text: `${formatTime(one.predicted_s)} predicted`, series: one.is_chosen ? 2 : 1,
             isHatched: true},
            ...time === null ? [] : [{name: '', value: time, series: one.is_chosen ? 2 : 1,
                                      text: `${formatTime(time)} measured`}],
        ];
    });
    const shown = app.figure('', {isOpen: true});
    shown.show(bars({label: 'Predicted and measured times', width, list}),
        ['kernel', 'predicted', 'measured', 'measured / predicted', 'verdict'],
        known.map(one => {
            const time = findTime(measured, one.kernel);
            return [one.kernel, one.is_legal ? formatTime(one.predicted_s) : '-',
                    time === null ? '-' : formatTime(time),
                    time === null || !one.is_legal ? '-' : formatCount(time / one.predicted_s),
                    one.is_chosen ? 'chosen' : one.reason];
        }), `${plan.device.name}, ${plan.device.isa}: ${legal.length} kernels can run`);
    const peers = measured.filter(isPeer);
    root.append(shown.node, peers.length === 0 ? '' : app.table(
        ['library', 'measured', 'GFLOP/s'],
        peers.map(record => [nameRecord(record), formatTime(record.median_s),
                             record.gflop_per_s])));
}

// The ladder on the state's chip, whether such a GPU is here or not.
function showLadder(app, root) {
    const measured = listMeasured(app.data, app.state);
    const rows = app.model.kernels.filter(row => row.device === 'cuda' && row.ladder_rung >= 0)
        .map(row => app.model.explain({...app.state, kernel: row.name, tile: 0}))
        .filter(one => !one.error);
    const quickest = Math.min(...rows.filter(one => one.is_legal).map(one => one.predicted_s));
    const others = measured.filter(record => isOnGpu(record) &&
        !rows.some(one => one.kernel === record.name) && !record.name.startsWith('cpu_'));
    rows.sort((a, b) => b.is_legal - a.is_legal || a.predicted_s - b.predicted_s);
    root.append(app.table(
        ['kernel', 'predicted (estimate)', 'of the quickest', 'measured', 'bound', 'verdict'],
        rows.map(one => {
            const time = findTime(measured, one.kernel);
            return [one.kernel, formatTime(one.predicted_s),
                    one.is_legal ? `${formatCount(one.predicted_s / quickest)} x` : '-',
                    time === null ? '-' : formatTime(time), one.bound,
                    !one.is_legal ? one.reason : one.predicted_s === quickest
                        ? 'quickest of the ladder' : `its ${one.limiter} takes longest`];
        }).concat(others.map(record => [nameRecord(record), '-', '-', formatTime(record.median_s),
                                        '-', 'measured alone: not in this model']))));
}

export default {
    id: 'plan',
    title: 'The plan',
    mount(root, app) {
        const shown = app.html('div');
        root.append(shown);
        const draw = () => {
            const {m, n, k, chip} = app.state;
            const width = app.measureWidth(root, 640);
            shown.replaceChildren();
            for (const plan of app.data.candidates) {
                shown.append(app.html('h2', {}, `${plan.shape} on ${plan.device.device}`));
                if (plan.m !== m || plan.n !== n || plan.k !== k)
                    shown.append(app.html('p', {class: 'hint'},
                        `Planned for ${plan.shape} when the page was written; ` +
                        `tilegemm report ${m}x${n}x${k} plans the size shown.`));
                showDevice(app, plan, shown, width);
            }
            shown.append(app.html('h2', {},
                `The ladder for ${m} x ${n} x ${k} on ${chip}, by the model`));
            showLadder(app, shown);
        };
        app.on('change', draw);
        draw();
    },
};
