// This module serves drawings that a person points at, or that are wider than the screen.

// Adds the stripes that every drawing fills areas with.
export function addPatterns(svg) {
    const pattern = (id, size, kind, turn = 45) => svg('pattern', {id, width: size, height: size,
        patternUnits: 'userSpaceOnUse', patternTransform: `rotate(${turn})`},
        svg('line', {x1: 0, y1: 0, x2: 0, y2: size, class: kind}));
    document.body.append(svg('svg', {width: 0, height: 0, 'aria-hidden': 'true',
                                     style: 'position: absolute'},
        svg('defs', {}, [pattern('stripes', 6, 'stripe'),
                         pattern('warp-stripes', 5, 'warp-stripe'),
                         pattern('waiting', 6, 'waiting-bar', 0)])));
}

// Makes a drawing that a narrow screen scrolls.
export const makeScroll = (html, drawing) => html(
    'div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'drawing'}, drawing);

// Calls choose(x, y), in the drawing's units, at a click. A drag selects numbers and chooses
// nothing.
export function listenToClicks(drawing, choose) {
    drawing.addEventListener('click', event => {
        if (!getSelection().isCollapsed)
            return;
        const {x, y} = new DOMPoint(event.clientX, event.clientY)
            .matrixTransform(drawing.getScreenCTM().inverse());
        choose(x, y);
    });
}

// Calls move(rows, columns) at an arrow key.
export function listenToArrows(drawing, move) {
    const steps = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    drawing.addEventListener('keydown', event => {
        if (!steps[event.key] || event.ctrlKey || event.metaKey || event.altKey)
            return;
        event.preventDefault();
        move(...steps[event.key]);
    });
}
