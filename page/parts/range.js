// Makes a slider over 0 .. getHigh() for a key of the state, whose end follows what is shown.
export function makeRange(app, {key, label, getHigh, format = String}) {
    const {html} = app;
    const input = html('input', {type: 'range', min: 0, step: 1, id: `range-${key}`,
                                 'data-key': key});
    const output = html('output', {for: input.id});
    const get = () => Math.min(Math.max(0, Math.round(app.state[key])), getHigh());
    input.addEventListener('input', () => app.set({[key]: Number(input.value)}));
    return {
        node: html('div', {class: 'control'}, [
            html('div', {}, [html('label', {for: input.id}, label), ' ', output]), input]),
        get,
        show() {
            input.max = Math.max(0, getHigh());
            input.value = get();
            output.textContent = format(get());
            input.setAttribute('aria-valuetext', format(get()));
        },
    };
}
