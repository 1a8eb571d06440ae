// This view walks tile by tile: one block of D after another, phase by phase, with what its threads
// hold.
import {makeTileFields} from '../facts/tiling.js';
import {makeStage} from './walk_stage.js';

const PRESETS = [
    {label: '4 x 4, tile 2', state: {m: 4, n: 4, k: 4, kernel: 'tiled', tile: 2}},
    {label: '6 x 7 x 5, tile 4: edges', state: {m: 6, n: 7, k: 5, kernel: 'edges', tile: 4}},
    {label: '5 x 7 x 9, tile 3', state: {m: 5, n: 7, k: 9, kernel: 'edges', tile: 3}},
    {label: '55 x 43 x 48, tile 16', state: {m: 55, n: 43, k: 48, kernel: 'edges', tile: 16}},
];

export default {
    id: 'walk',
    title: 'Tile by tile',
    state: {blockRow: 0, blockCol: 0, at: 0, speed: 2, thread: 0},
    mount(root, app) {
        const {html} = app;
        const stage = makeStage(app, {
            getShown: () => app.state, controls: makeTileFields(app),
            showRefusal: reason => [
                html('p', {class: 'warn'}, reason),
                app.button('Take the kernel edges', () => app.set({kernel: 'edges'}))]});
        const warning = html('p', {class: 'warn'});
        const own = {label: 'this report\'s product', state: app.ownProduct};
        root.append(stage.node, warning,
            html('div', {class: 'controls', role: 'group', 'aria-label': 'examples'},
                [own, ...PRESETS].map(preset => app.button(preset.label, () => app.set(
                    {...preset.state, blockRow: 0, blockCol: 0, at: 0, thread: 0})))));
        const draw = () => {
            const {error, is_legal: isLegal, reason} = app.explain();
            warning.hidden = Boolean(error) || isLegal || app.state.kernel === 'tiled';
            warning.textContent = reason ?? '';
            stage.draw();
        };
        app.on('change', draw);
        draw();
    },
};
