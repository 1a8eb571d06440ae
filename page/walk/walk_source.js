// This module shows the body of the kernel's main function, with the line of the phase marked.
const PATTERNS = {
    load: /\bload</, arrive: /copy_async_wait/, barrier: /__syncthreads\(\)/,
    multiply: /\bcompute<|\+=.*\*/, store: /\bstore<|\bd\[.*\] =/,
};

// Returns the first and last line (from 0) of the body of multiply().
function findMain(lines) {
    const name = lines.findIndex(line => /__device__ void multiply\(/.test(line));
    const start = lines.findIndex((line, i) => i > name && line === '{');
    const end = lines.findIndex((line, i) => i > name && line === '}');
    return name < 0 || start < 0 || end < 0 ? null : [start + 1, end - 1];
}

function findLine(lines, [first, last], place) {
    const found = [];
    for (let i = first; i <= last; i++) {
        if (PATTERNS[place.phase].test(lines[i]))
            found.push(i);
    }
    // The second of a step's two barriers ends the step.
    return place.phase === 'barrier' && place.index > 1 ? found[1] : found[0];
}

export function describeSource(html, app, {place, explained}) {
    const source = app.sources[explained.family];
    const range = source && findMain(source.lines);
    if (!range)
        return null;
    const [first, last] = range;
    const current = findLine(source.lines, range, place);
    const lines = source.lines.slice(first, last + 1).map((text, i) => {
        const isHere = first + i === current;
        return html('span', {class: isHere ? 'line here' : 'line'},
                    `${isHere ? '>' : ' '} ${String(first + i + 1).padStart(3)}  ${text}`);
    });
    return html('details', {open: true, class: 'kernel-source'}, [
        html('summary', {}, `The line of ${source.path}`), html('pre', {tabindex: 0}, lines)]);
}
