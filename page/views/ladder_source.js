// This module shows the source of a rung, with what the simulator counted on each line in the
// margin.
import {formatBytes, formatCount} from '../parts/format.js';

// COLUMNS lists what the margin shows, and in which words.
const COLUMNS = [
    {key: 'global', label: 'global', title: 'bytes read from or written to global memory',
     read: line => line.global_read_bytes + line.global_write_bytes, format: formatBytes},
    {key: 'sectors', label: 'sectors', title: 'sectors of 32 bytes moved',
     read: line => line.global_load_sectors + line.global_store_sectors, format: formatCount},
    {key: 'shared', label: 'shared', title: 'requests to shared memory',
     read: line => line.shared_load_requests + line.shared_store_requests, format: formatCount},
    {key: 'conflicts', label: 'conflicts', title: 'bank conflicts: turns more than needed',
     read: line => line.bank_conflicts, format: formatCount},
];

// Returns the names of the family's simulations: those of the tile and the size at hand first, then
// those of the size with k cut, then the others.
function listNames(app) {
    const {kernel} = app.explain();
    const {m, n, k} = app.state;
    const rank = name => (name.startsWith(`${kernel} `) ? 0 : 4) +
        (name.endsWith(` ${m}x${n}x${k}`) ? 0 : name.includes(` ${m}x${n}x`) ? 1 : 2);
    return [...app.sources[app.state.kernel]?.simulations.keys() ?? []]
        .sort((a, b) => rank(a) - rank(b));
}

// Says where the margin's figures come from, and of which product.
function sayOrigin(app, one) {
    const {m, n, k} = app.state;
    if (!one)
        return 'The margin is empty: this report holds no simulation of this kernel.';
    const blocks = one.is_exact ? 'All its blocks ran' :
        `${formatCount(one.simulated_block_count)} of its ${formatCount(one.block_count)} blocks ` +
        'ran, and their counts were scaled up';
    const isOwn = one.m === m && one.n === n && one.k === k;
    const isCut = one.m === m && one.n === n && one.k < k;
    return `The margin: what each line moves in ${one.m} x ${one.n} x ${one.k} by ${one.kernel}, ` +
        `counted by the simulator. ${blocks}. ` + (isOwn ? 'That is the product above.' : isCut
            ? `It is the product above with k cut from ${formatCount(k)} to ` +
              `${formatCount(one.k)}, so that it ran within seconds: of the whole k each line ` +
              'in the loop moves more.'
            : `It is not the product above: tilegemm report ${m}x${n}x${k} simulates that one.`);
}

export function drawSource(app) {
    const node = app.html('div');
    const choice = app.choice({key: 'counts', label: 'counts in the margin: kernel and size',
        options: () => listNames(app).map(name => ({value: name, label: name}))});
    const listing = app.html('div', {class: 'source', tabindex: 0, role: 'region',
                                     'aria-label': 'source with counts'});
    const path = app.html('p', {class: 'hint'});
    const origin = app.html('p', {class: 'origin'});
    node.append(app.html('h2', {}, 'Its source'), path, choice, origin, listing);

    function draw() {
        const source = app.sources[app.state.kernel];
        const names = listNames(app);
        const name = names.includes(app.state.counts) ? app.state.counts : names[0];
        choice.hidden = names.length === 0;
        if (name)
            choice.querySelector('select').value = name;
        path.textContent = source ?
            `${source.path}, from line ${source.fieldLineCount + 1} on` : '';
        const simulation = source?.simulations.get(name);
        origin.textContent = sayOrigin(app, simulation);
        const counts = new Map(simulation?.lines.map(line => [line.line, line]));
        const start = source ? source.fieldLineCount : 0; // the table above shows the fields
        const rows = (source?.lines ?? []).slice(start).map((text, i) => {
            const number = start + i + 1;
            const line = counts.get(number);
            const cells = COLUMNS.map(column => {
                const value = line ? column.read(line) : 0;
                return app.html('td', {class: 'number', 'data-value': value || null,
                                       'data-label': column.label},
                                value ? column.format(value) : '');
            });
            return app.html('tr', {class: line ? 'counted' : null},
                [...cells, app.html('th', {scope: 'row'}, String(number)),
                 app.html('td', {}, app.html('code', {}, text))]);
        });
        listing.replaceChildren(app.html('table', {}, [
            app.html('thead', {}, app.html('tr', {}, [
                ...COLUMNS.map(column => app.html('th', {scope: 'col', title: column.title},
                                                  column.label)),
                app.html('th', {scope: 'col'}, 'line'), app.html('th', {scope: 'col'}, 'source')])),
            app.html('tbody', {}, rows)]));
    }
    return {node, draw};
}
