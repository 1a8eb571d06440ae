// Chapter: the next tiles are copied while these are multiplied.
import {makeTiling} from '../facts/tiling.js';
import {formatTime} from '../parts/format.js';
import {drawPipeline} from '../pictures/pipeline_picture.js';
import {makeWalk} from '../walk/walk_plan.js';

const STEPS = 4;
const WIDTH_MOST = 950;
const CASES = [{value: 'vector', label: 'one buffer'}, {value: 'buffered', label: 'two buffers'}];

export default {
    title: 'Pipelines: copy ahead',
    idea: ['With one buffer, copying and multiplying take turns, with a barrier after each. With ' +
           'two, cp.async fills one in the background while the other is multiplied, and one ' +
           'barrier a step is enough.'],
    state: {buffers: 'vector'},
    closer: {view: 'walk', label: 'Walk through the buffered kernel',
             state: {kernel: 'buffered', tile: 128}},
    mount(app, {controls, picture, showFacts}) {
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(app.segments({key: 'buffers', label: 'the block has', options: CASES}));
        return () => {
            const chosen = CASES.find(one => one.value === app.state.buffers) ?? CASES[0];
            const {m, n, k} = app.ownProduct;
            const own = app.explain({m, n, k, kernel: chosen.value,
                                     tile: app.findRowTile(chosen.value)});
            const tiling = makeTiling(own);
            const {isBuffered} = makeWalk(tiling);
            shown.show(drawPipeline(app.svg, isBuffered, STEPS,
                                    app.measureWidth(picture, WIDTH_MOST),
                                    `${chosen.label}: the order of copies, barriers and products`),
                ['what', 'count'], [['barriers a step', tiling.barriersPerStep]],
                'Four steps along k: what happens beside what (order, not time)');
            showFacts([['barriers a step', Math.round(tiling.barriersPerStep)],
                       [`steps in your ${m} x ${n} x ${k}`, tiling.stepCount],
                       ['predicted time (estimate)',
                        own.is_legal ? formatTime(own.predicted_s) : `- (${own.reason})`]]);
        };
    },
};
