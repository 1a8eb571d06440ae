// The last chapter: the reader's own product on every rung, predicted and measured.
import {explainMeasured} from '../facts/bench.js';
import {findOwnRun, makeLadder} from '../facts/ladder_runs.js';
import {formatCount, formatTime} from '../parts/format.js';
import {drawLadder, LADDER_COLUMNS, listLadderRows} from '../pictures/ladder_picture.js';

export default {
    title: 'Your own product',
    idea: ['Every rung of the ladder at your sizes: its predicted time, beside the measured time ' +
           'if this report has one. Choose any chip: the model needs no such GPU.'],
    state: {},
    closer: {view: 'ladder', label: 'Open the ladder and its sources'},
    mount(app, {controls, picture, showFacts}) {
        const shown = app.figure('');
        const origin = app.html('p', {class: 'hint'});
        picture.append(shown.node, origin);
        controls.append(app.choice({key: 'chip', label: 'chip', options: () => app.model.chips.map(
            chip => ({value: chip.name, label: chip.title}))}));
        return () => {
            const {m, n, k} = app.ownProduct;
            const run = findOwnRun(app, app.ownProduct);
            const {entries} = makeLadder({...app, state: {...app.state, m, n, k}},
                                         run && {...run, name: 'your product'});
            const caption = `${m} x ${n} x ${k} on ${app.findChip(app.state.chip).title}: ` +
                (run ? 'predicted and measured' : 'predicted (estimates)');
            shown.show(entries.length
                ? drawLadder(app, entries, app.measureWidth(picture, 980), caption)
                : app.html('p', {class: 'hint'}, 'The model has no kernel at this size.'),
                LADDER_COLUMNS, listLadderRows(entries), caption);
            origin.textContent = run ? explainMeasured(app) : 'Nothing was measured of this ' +
                'product on this chip: tilegemm bench --kernel ladder --shape ' +
                `${m}x${n}x${k} --json FILE does, and tilegemm report --bench FILE shows it.`;
            const rates = entries.filter(one => one.predicted).map(one => one.predicted);
            const {kernel, predicted_s: seconds} = app.model.choose({...app.state, m, n, k});
            showFacts(kernel ? [['the planner\'s choice', kernel],
                                ['predicted time (estimate)', formatTime(seconds)],
                                ['quickest over slowest, predicted',
                                 `${formatCount(Math.max(...rates) / Math.min(...rates))} x`]]
                             : []);
        };
    },
};
