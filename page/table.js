// Tables, and figures: a drawing with its caption and, folded behind it, the same numbers as a
// table.
import {html} from './elements.js';
import {formatCount} from './format.js';

// columns: labels, or {label, format}; rows: arrays of cells (text, numbers, elements).
export function table(columns, rows) {
    const heads = columns.map(column => typeof column === 'string' ? {label: column} : column);
    const cell = (value, column) => {
        const isNumber = typeof value === 'number';
        const shown = isNumber ? (column.format || formatCount)(value) : value;
        return html('td', {class: isNumber && 'number', 'data-value': isNumber && value},
                    [shown ?? '-']);
    };
    return html('div', {class: 'table', tabindex: 0, role: 'region', 'aria-label': 'table'},
        html('table', {}, [
            html('thead', {}, html('tr', {},
                heads.map(head => html('th', {scope: 'col'}, head.label)))),
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
