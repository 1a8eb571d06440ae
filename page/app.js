// The shell of the page holds the state and the tabs, and gives views what they need.
// page/README.md is the contract.
import {readRecords} from './facts/bench.js';
import {button, choice, numberField, segments, slider} from './parts/controls.js';
import {addPatterns} from './parts/drawing.js';
import {html, svg} from './parts/elements.js';
import {loadModel} from './facts/model.js';
import {readSources} from './facts/sources.js';
import {makeState} from './parts/state.js';
import {figure, table} from './parts/table.js';
import {makeHeader, THEMES} from './header.js';
import {makeTabs} from './tabs.js';
import {views} from './views.js';

const OWN_TILE = 16;

function readData() {
    const text = document.getElementById('report-data').textContent.trim();
    const data = text.startsWith('{') ? JSON.parse(text) : {};
    return {simulations: [], traces: [], bench: [], candidates: null, counted: [], ...data};
}

function makeApp(model, data) {
    const families = [...new Map(model.kernels.filter(row => row.device === 'cuda' &&
        row.ladder_rung >= 0).map(row => [row.family, row])).values()];
    const defaults = Object.assign({}, ...views.map(view => view.state), data.state);
    const modes = [...new Set(data.bench.map(file => file.mode))].sort(); // puts cold before hot
    defaults.view = views[0].id;
    defaults.mode = modes[0] ?? 'cold';
    const tiles = new Map(families.map(row => [row.family, model.listTiles(row)]));
    const listTiles = family => tiles.get(family);
    const listRowTiles = family => model.kernels.filter(row => row.device === 'cuda' &&
        (family ? row.family === family : row.ladder_rung >= 0)).map(row => row.tile_rows);
    // Returns a tile of the kernel table: the first choice of this page if the family has it,
    // otherwise the family's first.
    const findRowTile = family => {
        const rowTiles = listRowTiles(family);
        return rowTiles.includes(OWN_TILE) ? OWN_TILE : rowTiles[0];
    };
    // If the chosen rung has no row of a tile of the kernel table, the tile gives way to one of the
    // rung's own.
    const settle = (changed, keys) => {
        const isRowLeft = keys.includes('kernel') && !keys.includes('tile') &&
            listRowTiles().includes(changed.tile) &&
            !listRowTiles(changed.kernel).includes(changed.tile);
        if (isRowLeft || !listTiles(changed.kernel).includes(changed.tile))
            changed.tile = findRowTile(changed.kernel);
    };
    const {state, set, listen, listRefusals} = makeState(defaults, {
        view: views.map(view => view.id), kernel: families.map(row => row.family),
        chip: model.chips.map(chip => chip.name), theme: THEMES,
        mode: modes.length ? modes : ['cold']}, settle);
    const heard = []; // each entry is {view, listener, isDue}
    let mounting = null;
    const app = {
        state, model, data, figure, html, svg, table, families, modes, set, listTiles, findRowTile,
        listRefusals,
        ownProduct: data.state ?? {}, // sizes and tile that the report was written for
        sources: readSources(data),
        records: readRecords(data, model.chips),
        findChip: name => model.chips.find(chip => chip.name === name),
        // Explains the kernel of the state, or the case that `changes` turn it into.
        explain: (changes = {}) => model.explain({...state, ...changes}),
        on(event, listener) {
            if (event === 'change')
                heard.push({view: mounting, listener, isDue: false});
        },
        slider: options => slider(app, options),
        numberField: options => numberField(app, options),
        choice: options => choice(app, options),
        segments: options => segments(app, options),
        button,
        // Returns the width in pixels of a drawing in `root`, at most `most`.
        measureWidth: (root, most) => Math.max(280, Math.min(most, root.clientWidth || most)),
    };
    const isVisible = view => view === null || view === state.view;
    const callDue = () => heard.filter(entry => entry.isDue && isVisible(entry.view))
        .forEach(entry => {
            entry.isDue = false;
            entry.listener(state);
        });
    const callAll = () => {
        heard.forEach(entry => { entry.isDue = true; });
        callDue();
    };
    listen(callAll);
    addEventListener('resize', () => requestAnimationFrame(callAll));
    // Mounts a view, or a part of it that comes later. Its listeners are called while it is seen.
    app.mount = ({id, mount}, root) => {
        mounting = id;
        mount(root, app);
        mounting = null;
    };
    return app;
}

function followTheme(app) {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const theme = () => {
        const isDark = app.state.theme === 'auto' ? dark.matches : app.state.theme === 'dark';
        document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    };
    dark.addEventListener('change', theme);
    app.on('change', theme);
    theme();
}

// Printing opens the folded parts, because paper has no folds.
function unfoldOnPaper(root) {
    let unfolded = [];
    addEventListener('beforeprint', () => {
        unfolded = [...root.querySelectorAll('details:not([open])')];
        unfolded.forEach(one => one.toggleAttribute('open', true));
    });
    addEventListener('afterprint', () =>
        unfolded.forEach(one => one.toggleAttribute('open', false)));
}

async function start() {
    const root = document.getElementById('app');
    const data = readData();
    const model = await loadModel();
    if (data.chip)
        model.addChip(data.chip);
    addPatterns(svg);
    const app = makeApp(model, data);
    followTheme(app);
    const header = makeHeader(app);
    const tabs = makeTabs(app);
    root.replaceChildren(
        header.node, html('div', {class: 'bar'}, [tabs.bar, header.theme]),
        html('main', {}, tabs.panels),
        html('footer', {}, `tilegemm ${data.version ?? ''}: written ${data.date ?? ''}. Counts ` +
            'are exact, times are estimates unless they are called measured.'));
    tabs.show();
    unfoldOnPaper(root);
    document.documentElement.dataset.isReady = true;
    requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('first view')));
}

start().catch(error => {
    document.getElementById('app').replaceChildren(
        html('p', {role: 'alert'}, `The page cannot start: ${error.message}`));
    throw error;
});
