// Controls are bound to a key of the state: they show it, and set it when a person uses them.
import {html} from './elements.js';
import {SIZE_MAX, readWhole} from './state.js';

let next = 0;

function label(text, control, extra = []) {
    control.id = `control-${next++}`;
    return html('div', {class: 'control'}, [
        html('div', {}, [html('label', {for: control.id}, text), ' ', extra]), control]);
}

// Makes a slider over the list `values()`, or over low..high by `step`. It is bound to `key`, or to
// what `read(state)` and `write(value)` (changes of the state) make of the state. A value that is
// not in the list stands where locate(list, value) says.
export function slider(app, {key, label: text, values = null, low, high, step = 1,
                             format = String, read = state => state[key],
                             locate = (list, value) => list.indexOf(value),
                             write = value => ({[key]: value})}) {
    const input = html('input', {type: 'range', min: low, max: high, step, 'data-key': key});
    const output = html('output');
    const show = () => {
        const value = read(app.state);
        const list = values && values();
        if (list) {
            input.min = 0;
            input.max = list.length - 1;
        }
        input.value = list ? Math.max(0, locate(list, value)) : value;
        output.textContent = format(value);
        input.setAttribute('aria-valuetext', format(value));
    };
    input.addEventListener('input', () => app.set(
        write(values ? values()[Number(input.value)] : Number(input.value))));
    app.on('change', show);
    show();
    return label(text, input, output);
}

// Makes a field for a whole number from `low` to getHigh(). Any other text stays as it was typed,
// with the reason below it, and the page stays as it was.
export function numberField(app, {key, label: text, low = 1, getHigh = () => SIZE_MAX}) {
    const input = html('input', {type: 'number', min: low, step: 1, inputmode: 'numeric',
                                 'data-key': key});
    const node = label(text, input);
    const reason = html('p', {class: 'warn refusal', role: 'alert', hidden: true,
                              id: `${input.id}-refusal`});
    node.append(reason);
    let shown = null; // the value of the state that the field was last given
    const judge = () => {
        const {value, refusal} = readWhole(input.value, low, getHigh());
        input.max = getHigh();
        input.setAttribute('aria-invalid', refusal !== undefined);
        input.setAttribute('aria-describedby', refusal ? reason.id : '');
        reason.hidden = !refusal;
        reason.textContent = refusal ? `${input.value || 'This'} is refused: pass ${refusal}. ` +
            `${Math.min(app.state[key], getHigh())} is shown.` : '';
        return value;
    };
    const show = () => {
        if (app.state[key] !== shown && Number(input.value || NaN) !== app.state[key])
            input.value = app.state[key];
        shown = app.state[key];
        judge();
    };
    // The page follows while a number is typed. When the text becomes refused, the page returns to
    // the value from before.
    let before = app.state[key];
    const keep = () => { before = app.state[key]; };
    input.addEventListener('focus', keep);
    input.addEventListener('change', keep);
    input.addEventListener('input', () => {
        shown = judge() ?? before;
        app.set({[key]: shown});
        judge();
    });
    app.on('change', show);
    show();
    return node;
}

// Makes a choice among `options()`: [{value, label}].
export function choice(app, {key, label: text, options}) {
    const input = html('select', {'data-key': key});
    const isNumber = typeof app.state[key] === 'number';
    const show = () => {
        const value = String(app.state[key]);
        const list = options();
        const labels = JSON.stringify(list);
        if (input.dataset.labels !== labels) {
            input.dataset.labels = labels;
            input.replaceChildren(...list.map(option =>
                html('option', {value: option.value}, option.label)));
        }
        input.value = value;
    };
    input.addEventListener('change', () => app.set(
        {[key]: isNumber ? Number(input.value) : input.value}));
    app.on('change', show);
    show();
    return label(text, input);
}

// Makes a button for each of a few options, {value, label}, of which one is pressed.
export function segments(app, {key, label: text, options}) {
    const buttons = options.map(option => html('button', {
        type: 'button', onclick: () => app.set({[key]: option.value})}, option.label));
    const show = () => buttons.forEach((one, i) => one.setAttribute(
        'aria-pressed', options[i].value === app.state[key]));
    app.on('change', show);
    show();
    return html('fieldset', {class: 'segments', 'data-key': key}, [
        html('legend', {}, text), buttons]);
}

export const button = (text, onclick, attributes = {}) =>
    html('button', {type: 'button', onclick, ...attributes}, text);
