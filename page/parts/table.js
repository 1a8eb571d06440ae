// This module makes tables and figures. A figure is a drawing with its caption and, folded behind
// it, the same numbers as a table.
import {html} from './elements.js';
import {formatCount} from './format.js';

// Makes a table. `columns` are labels or {label, format, isRight, isWide}; `rows` are arrays of
// cells (text, numbers, elements). Columns of numbers are right-aligned, and so are those with
// isRight. A column of sentences needs isWide.
export function table(columns, rows) {
    const isNumber = value => typeof value === 'number';
    const heads = columns.map(column => typeof column === 'string' ? {label: column} : column)
        .map((head, i) => ({...head, isRight: head.isRight || rows.some(row => isNumber(row[i])) &&
            rows.every(row => isNumber(row[i]) || row[i] === '-')}));
    const align = (head, value) => head.isRight || isNumber(value) ? 'number' :
        head.isWide && 'wide';
    // Lets a name break behind an underscore: on paper and on a phone a long name has no other
    // place to break.
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

// figure('Bytes').show(drawing, columns, rows) draws the figure again; the table stays open or
// folded. With isOpen the table starts open.
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
