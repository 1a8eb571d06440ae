// This module draws a roofline: the roof of each unit, and points with their names.
import {mark, plot} from '../parts/chart.js';
import {formatCount} from '../parts/format.js';

const LETTER = 6.4; // width of a letter in pixels
const BOLD = 7.4;   // width of a bold one
const LINE = 13;    // height of a name
const NARROW = 480; // pixels of a chart that has no room for figures beside its roofs' names
const OFFSET = 9;   // from a point to its name
const FAR_OFFSETS = [30, 55, 85, 120]; // to the name of a point that must have one
const STEPS = 40;   // boxes that a slanting line is taken for

const meets = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height &&
    b.y < a.y + a.height;

// Lists the places around a point for a name of some width, from its right side on. Those beside
// the point and above or below it rise by 4 pixels, or by as much as they are far.
const listPlaces = (x, y, width, offset) => {
    const rise = offset === OFFSET ? 4 : offset;
    return [[x + offset, y - LINE / 2], [x - width / 2, y - LINE - offset + 2],
            [x - offset - width, y - LINE / 2], [x - width / 2, y + offset - 2],
            [x + offset, y - LINE - rise], [x + offset, y + rise],
            [x - offset - width, y - LINE - rise], [x - offset - width, y + rise]];
};

// Finds a place for a name beside its point, clear of what is taken and of roofs, or null. The name
// of a first point may stand on a roof, or else far from the point.
function placeName({name, isFirst}, x, y, inner, {taken, roofs}) {
    const width = (isFirst ? BOLD : LETTER) * name.length;
    const clear = [...taken, ...roofs];
    const tries = isFirst ? [[OFFSET, clear], [OFFSET, taken],
                             ...FAR_OFFSETS.map(offset => [offset, taken])] : [[OFFSET, clear]];
    for (const [offset, others] of tries) {
        const box = listPlaces(x, y, width, offset)
            .map(([left, top]) => ({x: left, y: top, width, height: LINE}))
            .find(one => one.x >= 0 && one.x + width <= inner.width && one.y >= 0 &&
                one.y + LINE <= inner.height && !others.some(other => meets(one, other)));
        if (box)
            return {...box, isFar: offset > OFFSET};
    }
    return null;
}

// Draws the line from a point to a name that stands far from it.
const drawLeader = (svg, {px, py}, box) => svg('line', {
    x1: px, y1: py, class: 'leader',
    x2: Math.max(box.x, Math.min(px, box.x + box.width)),
    y2: py < box.y ? box.y : Math.min(py, box.y + LINE)});

// Returns boxes along a line from (x, y) to (xEnd, yEnd).
const coverLine = (x, y, xEnd, yEnd) => Array.from({length: STEPS}, (_, i) => ({
    x: x + (xEnd - x) * i / STEPS - 2, y: y + (yEnd - y) * i / STEPS - 2, width: 4, height: 4}));

function drawRoof(svg, chart, {peak, ridge, title, figures}, room) {
    const name = chart.inner.width < NARROW ? title : `${title}: ${figures}`;
    const slope = peak / ridge;
    const [[low, high], [bottom]] = [chart.x.domain(), chart.y.domain()];
    const start = Math.max(low, bottom / slope);
    const path = [[start, slope * start], [ridge, peak], [high, peak]]
        .map(([intensity, rate]) => `${chart.x(intensity)} ${chart.y(rate)}`).join('L');
    const width = BOLD * name.length;
    const box = {x: chart.inner.width - width, y: chart.y(peak) - LINE - 4, width, height: LINE};
    room.taken.push(box);
    room.roofs.push({x: chart.x(ridge), y: chart.y(peak) - 2, height: 4, width: chart.inner.width},
                    ...coverLine(chart.x(start), chart.y(slope * start), chart.x(ridge),
                                 chart.y(peak)));
    chart.add(svg('path', {d: `M${path}`, class: 'roof'}),
              svg('text', {x: chart.inner.width, y: chart.y(peak) - 6, 'text-anchor': 'end',
                           class: 'note roof-name'}, name));
}

// Draws the chart. `roofs` are [{peak, ridge, title, figures}], `points` [{intensity, rate, look,
// title, name, isFirst}]; a name is drawn where there is room, those with isFirst before others and
// farther away if need be.
// `low` is the intensity that the axis begins with.
export function drawRoofline(svg, {label, width, height, roofs, points, low = null}) {
    const rates = points.map(point => point.rate);
    const intensities = points.map(point => point.intensity);
    const roofLength = width < NARROW ? 200 : 25; // times the ridge, for its name
    const chart = plot({label, width, height,
        x: {label: 'FLOP a byte that threads ask for', isLog: true, format: formatCount,
            domain: [low ?? Math.min(...intensities, 0.5) / 2,
                     Math.max(...intensities, ...roofs.map(roof => roof.ridge * roofLength))]},
        y: {label: 'GFLOP/s', isLog: true, format: value => formatCount(value / 1e9),
            domain: [low ? low * roofs[0].peak / roofs[0].ridge
                         : Math.min(...rates, roofs[0].peak) / 2,
                     Math.max(...roofs.map(roof => roof.peak), ...rates) * 2]}});
    const room = {taken: [], roofs: []}; // boxes where marks and names, and where roofs are
    for (const roof of roofs)
        drawRoof(svg, chart, roof, room);
    const placed = points.map(point => ({...point, px: chart.x(point.intensity),
                                         py: chart.y(point.rate)}));
    for (const {look: {shape, ...look}, title, px, py} of placed) {
        room.taken.push({x: px - 5, y: py - 5, width: 10, height: 10});
        chart.add(mark(shape, px, py, {...look, title}));
    }
    const named = placed.filter(point => point.name);
    for (const point of [...named.filter(one => one.isFirst),
                         ...named.filter(one => !one.isFirst)]) {
        const {name, isFirst} = point;
        const box = placeName(point, point.px, point.py, chart.inner, room);
        if (!box)
            continue;
        room.taken.push(box);
        if (box.isFar)
            chart.add(drawLeader(svg, point, box));
        chart.add(svg('text', {x: box.x, y: box.y + LINE - 3, class: isFirst ? 'note chosen-name'
                                                                            : 'note'}, name));
    }
    return chart.node;
}
