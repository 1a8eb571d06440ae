// This module makes the head of the page: what it is, and the product, kernel and chip that its
// instruments show.
import {html} from './parts/elements.js';
import {views} from './views.js';

export const THEMES = ['auto', 'light', 'dark'];
const PHONE = '(max-width: 40rem)';

function makeProductForm(app) {
    const chips = () => app.model.chips.map(chip => ({value: chip.name, label: chip.title}));
    const kernels = () => app.families.map(row => (
        {value: row.family, label: `${row.ladder_rung} ${row.family.replaceAll('_', ' ')}`}));
    const tiles = () => app.listTiles(app.state.kernel).map(tile => ({value: tile, label: tile}));
    return html('form', {class: 'controls', 'aria-label': 'product and chip',
                         onsubmit: event => event.preventDefault()}, [
        ...['m', 'n', 'k'].map(key => app.numberField({key, label: key})),
        app.choice({key: 'kernel', label: 'kernel', options: kernels}),
        app.choice({key: 'tile', label: 'tile', options: tiles}),
        app.choice({key: 'chip', label: 'chip', options: chips}),
        ...app.modes.length < 2 ? [] : [app.choice({
            key: 'mode', label: 'measured with caches',
            options: () => app.modes.map(value => ({value, label: value || 'not told'}))})],
    ]);
}

// Folds the form on a phone, so that the picture follows the tabs directly.
function makeFold(form) {
    const summary = html('summary', {}, 'Change product, kernel, chip');
    const fold = html('details', {class: 'product'}, [summary, form]);
    const phone = matchMedia(PHONE);
    const follow = () => { fold.open = !phone.matches; };
    phone.addEventListener('change', follow);
    follow();
    return fold;
}

function sayTile(explained) {
    return `No GPU kernel is compiled with this tile (${explained.kernel}): ` +
        'what is said of it is by the model, whose formulas hold for every tile, or by the ' +
        `simulator.${explained.is_legal ? '' : ` It cannot run: ${explained.reason}.`}`;
}

export function makeHeader(app) {
    const title = html('h1');
    const choice = html('p', {class: 'on-paper'}); // shows the controls' values in print
    const refused = html('p', {class: 'warn', role: 'status', hidden: true});
    const tileNote = html('p', {class: 'kernel-note', hidden: true});
    const fold = makeFold(makeProductForm(app));
    const theme = app.choice({key: 'theme', label: 'colours', options: () =>
        THEMES.map(value => ({value, label: value}))});
    theme.classList.add('theme');
    const draw = () => {
        const {m, n, k, chip, kernel, tile, view} = app.state;
        const shown = views.find(one => one.id === view);
        const isOfProduct = !shown.heading;
        choice.textContent = isOfProduct ? `${shown.title}; ${kernel}, tile ${tile}` : '';
        title.textContent = shown.heading ??
            `D = A B: ${m} x ${n} x ${k} on ${app.findChip(chip).title}`;
        document.title = isOfProduct ? `tilegemm ${m}x${n}x${k}` : `tilegemm: ${shown.heading}`;
        fold.hidden = !isOfProduct;
        const refusals = app.listRefusals();
        const explained = app.explain();
        tileNote.hidden = !isOfProduct || Boolean(explained.error) || explained.is_in_table;
        tileNote.textContent = tileNote.hidden ? '' : sayTile(explained);
        refused.hidden = refusals.length === 0;
        refused.textContent = `Refused in the address: ${refusals.join('; ')}.`;
    };
    app.on('change', draw);
    draw();
    return {theme, node: html('header', {}, [title, choice, fold, tileNote, refused])};
}
