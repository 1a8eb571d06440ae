// This module draws charts with axes: d3 makes the scales and the axes, the rest is SVG. Every
// chart belongs in a figure.
import {axisBottom, axisLeft} from 'd3-axis';
import {scaleLinear, scaleLog} from 'd3-scale';
import {select} from 'd3-selection';

import {svg} from './elements.js';

const MARGIN = {top: 12, right: 16, bottom: 44};
const TITLE_ROOM = 20; // room left of the labels of the left axis
const TICK_ROOM = 10;  // room between the labels and the axis
const MARK_AREA = 9;
const TEXT_PIXELS = 7.2; // average width of a character

function makeScale({isLog, domain}, range) {
    return (isLog ? scaleLog() : scaleLinear().nice()).domain(domain).range(range);
}

// A log scale that spans many decades labels only the decades.
function draw(axis, scale, {isLog, format}, tickCount) {
    const [low, high] = scale.domain();
    const text = format || String;
    if (isLog && high / low > 50)
        axis.tickFormat(value => Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6)
            ? text(value) : '');
    else
        axis.ticks(tickCount).tickFormat(text);
    return group => select(group).call(axis);
}

// Returns the margin that the labels of a left axis need.
function measureLabels(axis) {
    const lengths = [...axis.querySelectorAll('text')].map(text => text.textContent.length);
    return TITLE_ROOM + TICK_ROOM + TEXT_PIXELS * Math.max(1, ...lengths);
}

// plot({label, width, x: {label, domain, isLog, format}, y: ...}) returns {node, x, y,
// add(elements)}. x and y place values; the frame cuts off elements that leave it.
export function plot({label, width, height = 340, x, y}) {
    const innerHeight = height - MARGIN.top - MARGIN.bottom;
    const left = svg('g');
    const yScale = makeScale(y, [innerHeight, 0]);
    draw(axisLeft(yScale), yScale, y, Math.max(3, innerHeight / 50))(left);
    const margin = measureLabels(left);
    const inner = {width: width - margin - MARGIN.right, height: innerHeight};
    const xScale = makeScale(x, [0, inner.width]);
    const bottom = svg('g', {transform: `translate(0 ${inner.height})`});
    const body = svg('g');
    draw(axisBottom(xScale), xScale, x, Math.max(3, inner.width / 90))(bottom);
    const node = svg('svg', {role: 'img', 'aria-label': label, width, height, class: 'plot',
                             viewBox: `0 0 ${width} ${height}`},
        svg('g', {transform: `translate(${margin} ${MARGIN.top})`}, [
            bottom, left, body,
            svg('text', {x: inner.width / 2, y: inner.height + 38, 'text-anchor': 'middle',
                         class: 'title'}, x.label),
            svg('text', {transform: `translate(${14 - margin} ${inner.height / 2}) rotate(-90)`,
                         'text-anchor': 'middle', class: 'title'}, y.label),
        ]));
    return {node, x: xScale, y: yScale, inner, add: (...elements) => body.append(...elements)};
}

// Marks differ by shape as well as by colour.
const SHAPES = {
    circle: s => `M${-s} 0a${s} ${s} 0 1 0 ${2 * s} 0a${s} ${s} 0 1 0 ${-2 * s} 0`,
    square: s => `M${-s} ${-s}h${2 * s}v${2 * s}h${-2 * s}z`,
    diamond: s => `M0 ${-1.3 * s}L${1.3 * s} 0L0 ${1.3 * s}L${-1.3 * s} 0z`,
    triangle: s => `M0 ${-1.2 * s}L${1.2 * s} ${s}H${-1.2 * s}z`,
    cross: s => `M${-s} ${-s}L${s} ${s}M${-s} ${s}L${s} ${-s}`,
};

export function mark(shape, px, py, {series = 1, size = Math.sqrt(MARK_AREA) * 1.6, title = '',
                                      isHollow = false} = {}) {
    const colour = `var(--series-${series})`;
    return svg('path', {d: SHAPES[shape](size), transform: `translate(${px} ${py})`,
                        fill: isHollow || shape === 'cross' ? 'none' : colour, stroke: colour,
                        'stroke-width': 2, class: 'mark'}, svg('title', {}, title));
}

// Returns a legend as an HTML list of entries [{shape, series, text, isHollow}].
export function legend(app, entries) {
    return app.html('ul', {class: 'legend'}, entries.map(entry => app.html('li', {}, [
        svg('svg', {width: 18, height: 14, viewBox: '-9 -7 18 14', 'aria-hidden': true},
            entry.line ? svg('path', {d: 'M-9 0H9', stroke: `var(--series-${entry.series})`,
                                      'stroke-width': 2, 'stroke-dasharray': entry.line})
                       : mark(entry.shape, 0, 0, entry)),
        ` ${entry.text}`,
    ])));
}

let barChartCount = 0; // pattern names belong to the document, so each chart has its own

const BAR = {height: 18, gap: 6, label: 20};
const BESIDE_LEAST = 640; // pixels: a wider chart has the names beside the bars
const NAME_SHARE = 0.45;  // share of the width that names may take there

// Returns where names and bars stand: names beside the bars if there is room, otherwise above. A
// bar without a name belongs to the one before it.
function placeBars(list, width) {
    const room = text => TEXT_PIXELS * Math.max(0, ...list.map(bar => bar[text].length)) + 10;
    const isBeside = width >= BESIDE_LEAST && room('name') < NAME_SHARE * width;
    const left = isBeside ? room('name') : 0;
    const tops = [];
    let height = 2;
    for (const {name} of list) {
        tops.push(height += !isBeside && name ? BAR.label : 0);
        height += BAR.height + BAR.gap;
    }
    return {left, tops, height, nameY: isBeside ? BAR.height - 5 : -5,
            length: Math.max(60, width - left - room('text'))};
}

// Writes a name that is too long for the chart with its end cut off; its title is the whole name.
function drawName(name, y, width) {
    const most = Math.floor(width / TEXT_PIXELS);
    return name.length <= most ? svg('text', {y}, name) : svg('text', {y}, [
        `${name.slice(0, most - 1)}\u2026`, svg('title', {}, name)]);
}

function makeHatches(hatch) {
    return [1, 2, 3, 4, 5].map(series => svg('pattern', {
        id: `${hatch}-${series}`, width: 6, height: 6, patternUnits: 'userSpaceOnUse',
        patternTransform: 'rotate(45)'},
        svg('path', {d: 'M0 0V6', stroke: `var(--series-${series})`, 'stroke-width': 3})));
}

// Draws horizontal bars with their names: [{name, value, text, series, isHatched}].
// Values start at 0 and end at `most`, or at the largest of them.
export function bars({label, width, list, most = 0}) {
    const high = Math.max(...list.map(bar => bar.value).filter(value => value > 0), most) || 1;
    const {left, tops, height, nameY, length} = placeBars(list, width);
    const scale = scaleLinear().domain([0, high]).range([0, length]);
    const hatch = `hatch-${barChartCount++}`;
    const rows = list.map((bar, i) => {
        const shown = bar.value > 0 ? Math.max(1, scale(bar.value)) : 0;
        const colour = `var(--series-${bar.series || 1})`;
        return svg('g', {transform: `translate(0 ${tops[i]})`}, [
            drawName(bar.name, nameY, width),
            svg('rect', {x: left, y: 0, width: shown, height: BAR.height, stroke: colour,
                         fill: bar.isHatched ? `url(#${hatch}-${bar.series || 1})` : colour}),
            svg('text', {x: left + shown + 6, y: BAR.height - 5}, bar.text),
        ]);
    });
    return svg('svg', {role: 'img', 'aria-label': label, width, height,
                       viewBox: `0 0 ${width} ${height}`},
        [svg('defs', {}, makeHatches(hatch)), rows]);
}
