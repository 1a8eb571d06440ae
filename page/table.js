// Tables, and figures: a drawing with its caption and, folded behind it, the same numbers as a
// table.
import {html} from './elements.js';
import {formatCount} from './format.js';

// columns: labels, or {label, format, isRight, isWide}; rows: arrays of cells (text, numbers,
// elements). Columns of numbers stand at the right, and those that are isRight; sentences need one
// that isWide.
export function table(columns, rows) {
    const isNumber = value => typeof value === 'number';
    const heads = columns.map(column => typeof column === 'string' ? {label: column} : column)
        .map((head, i) => ({...head, isRight: head.isRight || rows.some(row => isNumber(row[i])) &&
            rows.every(row => isNumber(row[i]) || row[i] === '-')}));
    const align = (head, value) => head.isRight || isNumber(value) ? 'number' :
        head.isWide && 'wide';
    // Names may break behind an underscore: on paper and on a phone nothing else would end them.
    const breakNames = value => typeof value === 'string' && value.includes('_')
        ? value.split(/(?<=_)/).flatMap(part => [part, html('wbr')]) : value;
    const cell = (value, head) => html('td', {
        class: align(head, value), 'data-value': isNumber(value) && value},
        [isNumber(value) ? (head.format || formatCount)(value) :
            breakNames(value ?? '-')]);
    return html('div', {class: 'table', tabindex: 0, role: 'region', 'aria-label': 'table'},
        html('table', {}, [
            html('thead', {}, html('tr', {}, heads.map(head =>
                html('th', {scope: 'col', class: head.isRight && 'number'}, head.label)))),
            html('tbody', {}, rows.map(row =>
                html('tr', {}, row.map((value, i) => cell(value, heads[i]))))),
        ]));
}

// figure('Bytes').show(drawing, columns, rows) draws it anew; the table stays open or folded.
// isOpen: it starts open.
export function figure(caption, {isOpen = false} = {}) {
    const drawing = html('div', {class: 'drawing'});
    const numbers = html('div');
    const title = html('figcaption', {}, caption);
    const node = html('figure', {}, [
        title, drawing,
        html('details', {open: isOpen}, [html('summary', {}, 'The numbers as a table'), numbers]),
    ]);
    return {
        node,
        show(shown, columns, rows, heading = caption) {
            title.replaceChildren(heading);
            drawing.replaceChildren(shown);
            numbers.replaceChildren(table(columns, rows));
        },
    };
}
