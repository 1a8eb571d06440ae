// The shell of the page holds the state and the tabs, and gives views what they need.
// page/README.md is the contract.
import {readRecords} from './facts/bench.js';
import {button, choice, numberField, slider} from './parts/controls.js';
import {html, svg} from './parts/elements.js';
import {loadModel} from './facts/model.js';
import {readSources} from './facts/sources.js';
import {makeState} from './parts/state.js';
import {figure, table} from './parts/table.js';
import {views} from './views.js';

const OWN_TILE = 16;
const THEMES = ['auto', 'light', 'dark'];

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
    app.mount = (view, root) => {
        mounting = view.id;
        view.mount(root, app);
        mounting = null;
    };
    return app;
}

function makeTabs(app, panels) {
    const tabs = views.map(view => html('button', {
        type: 'button', role: 'tab', id: `tab-${view.id}`, 'aria-controls': `panel-${view.id}`,
        onclick: () => app.set({view: view.id}),
    }, view.title));
    const bar = html('div', {role: 'tablist', 'aria-label': 'views', class: 'tabs'}, tabs);
    bar.addEventListener('keydown', event => {
        const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        const place = views.findIndex(view => view.id === app.state.view);
        const target = event.key === 'Home' ? 0 : event.key === 'End' ? views.length - 1 :
            step && (place + step + views.length) % views.length;
        if (target === undefined)
            return;
        event.preventDefault();
        app.set({view: views[target].id});
        tabs[target].focus();
    });
    const show = () => {
        views.forEach((view, i) => {
            const isShown = view.id === app.state.view;
            tabs[i].setAttribute('aria-selected', isShown);
            tabs[i].tabIndex = isShown ? 0 : -1;
            if (isShown && panels[i].hidden) // on a phone the bar is wider than the screen
                requestAnimationFrame(() => {
                    bar.scrollLeft = tabs[i].offsetLeft - bar.offsetLeft;
                });
            panels[i].hidden = !isShown;
            if (isShown && !panels[i].dataset.isMounted) {
                panels[i].dataset.isMounted = true;
                app.mount(view, panels[i]);
            }
        });
    };
    app.on('change', show);
    return {bar, show};
}

function makeShape(app) {
    const chips = () => app.model.chips.map(chip => ({value: chip.name, label: chip.title}));
    const kernels = () => app.families.map(row => (
        {value: row.family, label: `${row.ladder_rung} ${row.family.replaceAll('_', ' ')}`}));
    const tiles = () => app.listTiles(app.state.kernel).map(tile => ({value: tile, label: tile}));
    const themes = () => THEMES.map(value => ({value, label: value}));
    return html('form', {class: 'controls', 'aria-label': 'product and chip',
                         onsubmit: event => event.preventDefault()}, [
        ...['m', 'n', 'k'].map(key => app.numberField({key, label: key})),
        app.choice({key: 'kernel', label: 'kernel', options: kernels}),
        app.choice({key: 'tile', label: 'tile', options: tiles}),
        app.choice({key: 'chip', label: 'chip', options: chips}),
        ...app.modes.length < 2 ? [] : [app.choice({
            key: 'mode', label: 'measured with caches',
            options: () => app.modes.map(value => ({value, label: value || 'not told'}))})],
        app.choice({key: 'theme', label: 'colours', options: themes}),
    ]);
}

async function start() {
    const root = document.getElementById('app');
    const data = readData();
    const model = await loadModel();
    if (data.chip)
        model.addChip(data.chip);
    const app = makeApp(model, data);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const theme = () => {
        const isDark = app.state.theme === 'auto' ? dark.matches : app.state.theme === 'dark';
        document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    };
    dark.addEventListener('change', theme);
    const title = html('h1');
    const choice = html('p', {class: 'on-paper'}); // shows the controls' values in print
    const refused = html('p', {class: 'warn', role: 'status', hidden: true});
    const tileNote = html('p', {class: 'kernel-note', hidden: true});
    const head = () => {
        const {m, n, k, chip, kernel, tile, view} = app.state;
        choice.textContent = `${views.find(one => one.id === view).title}; ${kernel}, tile ${tile}`;
        title.textContent = `D = A B: ${m} x ${n} x ${k} on ${app.findChip(chip).title}`;
        document.title = `tilegemm ${m}x${n}x${k}`;
        const refusals = app.listRefusals();
        const explained = app.explain();
        tileNote.hidden = Boolean(explained.error) || explained.is_in_table;
        tileNote.textContent = `No GPU kernel is compiled with this tile (${explained.kernel}): ` +
            'what is said of it is by the model, whose formulas hold for every tile, or by the ' +
            `simulator.${explained.is_legal ? '' : ` It cannot run: ${explained.reason}.`}`;
        refused.hidden = refusals.length === 0;
        refused.textContent = `Refused in the address: ${refusals.join('; ')}.`;
    };
    app.on('change', theme);
    app.on('change', head);
    theme();
    head();
    const panels = views.map(view => html('section', {
        role: 'tabpanel', id: `panel-${view.id}`, 'aria-labelledby': `tab-${view.id}`,
        tabindex: 0, hidden: true}));
    const tabs = makeTabs(app, panels);
    root.replaceChildren(
        html('header', {}, [title, choice, makeShape(app), tileNote, refused]),
        html('nav', {}, tabs.bar),
        html('main', {}, panels),
        html('footer', {}, `tilegemm ${data.version ?? ''}: written ${data.date ?? ''}. Counts ` +
            'are exact, times are estimates unless they are called measured.'));
    tabs.show();
    // Printing opens the folded parts, because paper has no folds.
    const folded = () => root.querySelectorAll('details:not([open])');
    let unfolded = [];
    addEventListener('beforeprint', () => {
        unfolded = [...folded()];
        unfolded.forEach(one => one.toggleAttribute('open', true));
    });
    addEventListener('afterprint', () =>
        unfolded.forEach(one => one.toggleAttribute('open', false)));
    document.documentElement.dataset.isReady = true;
    requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('first view')));
}

start().catch(error => {
    document.getElementById('app').replaceChildren(
        html('p', {role: 'alert'}, `The page cannot start: ${error.message}`));
    throw error;
});
