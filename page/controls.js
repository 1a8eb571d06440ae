// Controls bound to a key of the state: they show it, and set it when a person uses them.
import {html} from './elements.js';

let next = 0;

function label(text, control, extra = []) {
    control.id = `control-${next++}`;
    return html('div', {class: 'control'}, [
        html('div', {}, [html('label', {for: control.id}, text), ' ', extra]), control]);
}

// A slider over `values()`, a list, or over low..high by `step`. It is bound to `key`, or to what
// `read(state)` and `write(value)` (changes of the state) make of the state.
export function slider(app, {key, label: text, values = null, low, high, step = 1,
                             format = String, read = state => state[key],
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
        input.value = list ? Math.max(0, list.indexOf(value)) : value;
        output.textContent = format(value);
        input.setAttribute('aria-valuetext', format(value));
    };
    input.addEventListener('input', () => app.set(
        write(values ? values()[Number(input.value)] : Number(input.value))));
    app.on('change', show);
    show();
    return label(text, input, output);
}

// A whole number typed in; it counts when it is complete and inside its limits.
export function numberField(app, {key, label: text, low = 1, high = 1000000}) {
    const input = html('input', {type: 'number', min: low, max: high, step: 1, inputmode: 'numeric',
                                 'data-key': key});
    const show = () => {
        if (input.value === '' || Number(input.value) !== app.state[key])
            input.value = app.state[key];
    };
    input.addEventListener('input', () => {
        if (input.value !== '' && input.checkValidity())
            app.set({[key]: Number(input.value)});
    });
    input.addEventListener('blur', show);
    app.on('change', show);
    show();
    return label(text, input);
}

// One of `options()`: [{value, label}].
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

export const button = (text, onclick, attributes = {}) =>
    html('button', {type: 'button', onclick, ...attributes}, text);
