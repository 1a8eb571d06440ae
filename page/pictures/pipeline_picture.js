// This module draws in which order a kernel copies and multiplies the steps along k. It shows
// order, not time.
const GAP = 3;
const HEIGHT = 84;
const LEFT = 84;
const TOP = 26;
const ROWS = ['copy', 'wait', 'multiply'];

// Returns [{row, slot, step, isAhead}] for some steps of a walk.
function listBoxes(isBuffered, stepCount) {
    const boxes = [];
    for (let step = 0; step < stepCount; step++) {
        if (isBuffered) {
            boxes.push({row: 0, slot: 2 * step, step},
                       {row: 1, slot: 2 * step + 1, step}, {row: 2, slot: 2 * step + 2, step});
        } else {
            boxes.push({row: 0, slot: 4 * step, step}, {row: 1, slot: 4 * step + 1, step},
                       {row: 2, slot: 4 * step + 2, step}, {row: 1, slot: 4 * step + 3, step});
        }
    }
    return boxes;
}

export function drawPipeline(svg, isBuffered, stepCount, width, label) {
    const boxes = listBoxes(isBuffered, stepCount);
    const slotWidth = (width - LEFT) / (4 * stepCount);
    const height = TOP + ROWS.length * (HEIGHT + 14);
    const place = ({row, slot}) => ({x: LEFT + slot * slotWidth, y: TOP + row * (HEIGHT + 14)});
    const kinds = ['tile-a', 'gate-box', 'tile-d'];
    return svg('svg', {viewBox: `0 0 ${width} ${height}`, width, role: 'img', 'aria-label': label,
                       class: 'pipeline'}, [
        svg('text', {x: LEFT, y: 14, class: 'side-note'}, 'one after another \u2192'),
        ROWS.map((name, row) => svg('text', {x: 0, y: TOP + row * (HEIGHT + 14) + HEIGHT / 2 + 4,
                                             class: 'name'}, name)),
        boxes.map(box => {
            const {x, y} = place(box);
            return [svg('rect', {x, y, width: slotWidth - GAP, height: HEIGHT, rx: 4,
                                 class: `stage-box ${kinds[box.row]}`}),
                    svg('text', {x: x + (slotWidth - GAP) / 2, y: y + HEIGHT / 2, class: 'cell'},
                        String(box.step + 1))];
        }),
    ].flat(Infinity));
}
