// This view shows how far each rung of the ladder gets, what it changed, and what each line of its
// source moves.
import {explainMeasured, formatError, nameOrigin} from '../facts/bench.js';
import {findRun, listRuns, makeLadder} from '../facts/ladder_runs.js';
import {drawLadder, LADDER_COLUMNS, listLadderRows} from '../pictures/ladder_picture.js';
import {drawBeside} from './beside.js';
import {drawCliffs} from './cliffs.js';
import {drawSource} from './ladder_source.js';

const CHART_MOST = 1100;
const HALF_WIDTH = 560; // a wide screen has two charts beside each other

const listFields = (app, family) => Object.entries(app.sources[family]?.fields ?? {});

// Shows what each rung changed, or the idea of the first.
const showChanges = app => app.table(['rung', {label: 'what it changed', isWide: true}],
    app.families.map(({family, ladder_rung: rung}) => {
        const fields = listFields(app, family);
        const [, text] = fields.find(([name]) => name.startsWith('Changed')) ?? fields[0] ??
            ['', ''];
        return [`${rung} ${family}`, text];
    }));

// Shows the rungs that ran on the processor apart: their rates have another scale.
const showOnCpu = (app, records) => app.html('div', {class: 'on-cpu'}, [
    app.html('h2', {}, 'On the processor'),
    app.table(['kernel', 'threads', 'GFLOP/s', 'largest error', 'result', 'measured in'],
        records.map(record => [record.name, record.threads, record.gflop_per_s,
            formatError(record), record.is_right ? 'right' : 'WRONG', nameOrigin(record)]))]);

function sayMissing(runs) {
    return runs.length
        ? 'Not measured at this size, in FP32 by rows on this chip; the list above has the ' +
          'other runs. What follows are estimates.'
        : 'No measurement was given: tilegemm report --bench FILE shows what tilegemm bench ' +
          '--json FILE measured. What follows are estimates.';
}

function nameLadder(app, run, {m, n, k, chip}) {
    const title = `${m} x ${n} x ${k} on ${app.findChip(chip).title}`;
    return run ? `Predicted and measured: ${run.name}` : `Predicted for ${title} (estimates)`;
}

export default {
    id: 'ladder',
    title: 'The ladder',
    state: {run: -1, counts: '', beside: '', sweep: 'cube', products: ''},
    mount(root, app) {
        const runs = listRuns(app);
        const ladder = app.figure('The ladder');
        const beside = drawBeside(app);
        const cliffs = drawCliffs(app);
        const origin = app.html('p', {class: 'hint'});
        const fields = app.html('div');
        const onCpu = app.html('div');
        const missing = app.html('p', {class: 'hint'}, sayMissing(runs));
        const source = drawSource(app);
        root.append(
            app.html('div', {class: 'controls'}, runs.length ? app.choice({
                key: 'run', label: 'measured run',
                options: () => [
                    {value: -1, label: 'of the size above'},
                    ...runs.map((run, i) => ({value: i, label: run.name}))]}) : []),
            origin, missing, ladder.node, onCpu,
            app.html('details', {}, [app.html('summary', {}, 'What each rung changed'),
                                     showChanges(app)]),
            app.html('div', {class: 'beside'}, [cliffs.node, beside.node]),
            app.html('h2', {}, 'What the chosen rung changed'), fields, source.node);
        const draw = () => {
            const run = runs[app.state.run] ?? findRun(app, runs);
            const shown = makeLadder(app, run);
            missing.hidden = Boolean(run);
            const caption = nameLadder(app, run, shown);
            ladder.show(shown.entries.length
                ? drawLadder(app, shown.entries, app.measureWidth(root, CHART_MOST), caption)
                : app.html('p', {class: 'hint'}, app.explain().error),
                LADDER_COLUMNS, listLadderRows(shown.entries), caption);
            onCpu.replaceChildren(...shown.onCpu.length ? [showOnCpu(app, shown.onCpu)] : []);
            origin.textContent = explainMeasured(app);
            const width = app.measureWidth(root, HALF_WIDTH);
            beside.draw(width);
            cliffs.draw(width);
            fields.replaceChildren(app.table(['field', app.state.kernel],
                                             listFields(app, app.state.kernel)));
            source.draw();
        };
        app.on('change', draw);
        draw();
    },
};
