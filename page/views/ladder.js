// This view shows how far each rung of the ladder gets, what it changed, and what each line of its
// source moves.
import {explainMeasured, formatError, isHere, isOfSize, isPeer, isPlain, nameRecord} from
    '../facts/bench.js';
import {bars} from '../parts/chart.js';
import {formatCount, formatRate} from '../parts/format.js';
import {LIMITERS, predictRate} from '../facts/model.js';
import {drawBeside} from './beside.js';
import {drawCliffs} from './cliffs.js';
import {drawSource} from './ladder_source.js';

const HALF_WIDTH = 560; // a wide screen has two charts beside each other

// Groups the records of the result files into runs: one file, one shape, one thread count.
function listRuns(app) {
    const runs = new Map();
    for (const record of app.records) {
        const name = `${record.shape} on ${record.processor || record.device}, ` +
            `${record.threads} thread${record.threads === 1 ? '' : 's'}, ` +
            `${record.mode || 'caches not told'}, ${record.file}`;
        const key = `${record.index} ${name}`;
        if (!runs.has(key))
            runs.set(key, {name, records: []});
        runs.get(key).records.push(record);
    }
    return [...runs.values()];
}

function findRung(app, name) {
    const row = app.model.kernels.find(one => one.name === name);
    return row ? row.ladder_rung : -1;
}

// Returns the run with the most rungs among those at this size, on the chip at hand or otherwise on
// a processor.
function findRun(app, runs) {
    const countRungs = run => run.records.filter(one => findRung(app, one.name) > 0).length;
    const isOfState = ([record]) => isPlain(record) && isOfSize(app.state)(record);
    const found = runs.filter(run => isOfState(run.records))
        .sort((a, b) => countRungs(b) - countRungs(a));
    return found.find(run => run.records.some(isHere(app))) ?? found.find(
        run => run.records.every(one => one.isOnCpu && one.mode === app.state.mode));
}

// Sorts the rungs in their order, then the other kernels, then the libraries.
function sortRecords(app, records) {
    const place = record => isPeer(record) ? 2000 :
        findRung(app, record.name) < 0 ? 1000 : findRung(app, record.name);
    return [...records].sort((a, b) => place(a) - place(b) || a.gflop_per_s - b.gflop_per_s);
}

function drawRun(app, run, width) {
    const isChosen = record => record.name.startsWith(`cuda_${app.state.kernel}_`);
    const list = sortRecords(app, run.records).map(record => {
        const rung = findRung(app, record.name);
        return {
            name: `${rung >= 0 ? `rung ${rung}: ` : ''}${nameRecord(record)}` +
                (record.isOnCpu && record.device !== 'cpu' ? ', on the processor' : ''),
            value: record.gflop_per_s,
            text: `${formatRate(record.gflop_per_s * 1e9)}, error ${formatError(record)}` +
                (record.is_right ? '' : ': WRONG RESULT'),
            series: isPeer(record) ? 4 : isChosen(record) ? 2 : rung >= 0 ? 1 : 3,
            isHatched: isPeer(record)};
    });
    return bars({label: `GFLOP/s of ${run.name}`, width, list});
}

function listRunRows(app, run) {
    return sortRecords(app, run.records).map(record => [
        nameRecord(record), record.kind, record.gflop_per_s, record.median_s * 1e6,
        `${formatCount(100 * record.spread)} %`, formatError(record),
        record.max_bound_share === null ? '-' : record.max_bound_share.toPrecision(2),
        record.is_right ? 'right' : 'WRONG']);
}

// Draws the model's estimates if nothing was measured, and calls them estimates.
function drawPredicted(app, width) {
    const rows = app.families.map(({family}) => app.explain({
        kernel: family, tile: app.listTiles(family).includes(app.state.tile) ? app.state.tile
            : app.findRowTile(family)}))
        .filter(one => !one.error);
    const list = rows.map(one => ({
        name: `rung ${one.ladder_rung}: ${one.family} ${one.tile_rows} x ${one.tile_cols}`,
        isHatched: true,
        series: one.family === app.state.kernel ? 2 : 1,
        value: one.is_legal ? predictRate(one) : 0,
        text: one.is_legal ? formatRate(predictRate(one)) : 'cannot run, see the table'}));
    const chosen = app.model.choose(app.state);
    if (chosen.kernel && rows.length) {
        const rate = rows[0].useful_flops / chosen.predicted_s;
        list.push({name: `the planner's choice: ${chosen.kernel}`, isHatched: true, series: 3,
                   value: rate, text: formatRate(rate)});
    }
    return {rows, drawing: rows.length
        ? bars({label: 'Predicted GFLOP/s of the ladder', width, list})
        : app.html('p', {class: 'hint'}, app.explain().error)};
}

const listFields = (app, family) => Object.entries(app.sources[family]?.fields ?? {});

// Says what a rung changed, or the idea of the first rung.
function sayChange(app, family) {
    const fields = listFields(app, family);
    const [, text] = fields.find(([name]) => name.startsWith('Changed')) ?? fields[0] ?? ['', ''];
    return text;
}

export default {
    id: 'ladder',
    title: 'The ladder',
    state: {run: -1, counts: '', beside: '', sweep: 'cube', products: ''},
    mount(root, app) {
        const runs = listRuns(app);
        const measured = app.figure('Measured');
        const predicted = app.figure('Predicted');
        const beside = drawBeside(app);
        const cliffs = drawCliffs(app);
        const origin = app.html('p', {class: 'hint'});
        const fields = app.html('div');
        const missing = app.html('p', {class: 'hint'}, runs.length
            ? 'Not measured at this size, in FP32 by rows on this chip; the list above has the ' +
              'other runs. What follows are estimates.'
            : 'No measurement was given: tilegemm report --bench FILE shows what tilegemm bench ' +
              '--json FILE measured. What follows are estimates.');
        const source = drawSource(app);
        root.append(
            app.html('div', {class: 'controls'}, runs.length ? app.choice({
                key: 'run', label: 'measured run',
                options: () => [
                    {value: -1, label: 'of the size above'},
                    ...runs.map((run, i) => ({value: i, label: run.name}))]}) : []),
            origin, missing, app.html('div', {class: 'beside'}, [measured.node, predicted.node]),
            app.html('div', {class: 'beside'}, [cliffs.node, beside.node]),
            app.html('h2', {}, 'What the chosen rung changed'), fields, source.node);
        const draw = () => {
            const width = app.measureWidth(root, HALF_WIDTH);
            const run = runs[app.state.run] ?? findRun(app, runs);
            measured.node.hidden = !run;
            missing.hidden = Boolean(run);
            if (run)
                measured.show(drawRun(app, run, width), ['kernel', 'kind', 'GFLOP/s', 'median us',
                    'spread', 'largest error', 'share of the bound', 'result'],
                    listRunRows(app, run), `Measured: ${run.name}`);
            const {drawing, rows} = drawPredicted(app, width);
            const {m, n, k, chip} = app.state;
            predicted.show(drawing,
                ['kernel', 'GFLOP/s (estimate)', 'bound', 'takes longest', 'legal',
                 {label: 'what it changed', isWide: true}],
                rows.map(one => [one.family, one.is_legal ? predictRate(one) / 1e9 : '-', one.bound,
                                 LIMITERS[one.limiter], one.is_legal ? 'yes' : one.reason,
                                 sayChange(app, one.family)]),
                `Predicted for ${m} x ${n} x ${k} on ${app.findChip(chip).title} (estimates)`);
            origin.textContent = explainMeasured(app);
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
