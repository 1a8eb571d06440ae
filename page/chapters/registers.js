// Chapter: a thread that forms several elements reads fewer words for each product.
import {findUnit} from '../facts/units.js';
import {formatCount, formatTime} from '../parts/format.js';
import {drawOwners} from '../pictures/owners_picture.js';

const FIRST_RUNG = 4; // from here on every rung takes every size
const WARP_THREADS = 32;
const SIDE = 560;  // pixels of the picture, at most
const MARKS = 20;  // pixels beside the tile

// Returns the first rung of each register tile; fragments of tensor cores are another matter.
function listCases(app) {
    const cases = new Map();
    for (const row of app.families.filter(
        one => one.ladder_rung >= FIRST_RUNG && findUnit(one) === 'fma')) {
        const label = `${row.thread_rows} x ${row.thread_cols}`;
        if (!cases.has(label) && app.findRowTile(row.family))
            cases.set(label, {value: row.family, label});
    }
    return [...cases.values()];
}

function findOwned(owners, thread) {
    const rows = new Set();
    const cols = new Set();
    owners.forEach((line, row) => line.forEach((owner, col) => {
        if (owner === thread) {
            rows.add(row);
            cols.add(col);
        }
    }));
    return {rows, cols};
}

export default {
    title: 'Registers: more sums a thread',
    idea: ['With one sum a thread, every product reads two words of shared memory. A thread that ' +
           'keeps 8 x 8 sums reads 8 words of A and 8 of B, and forms 64 products. The ' +
           'marks beside the tile are the words that one thread reads.'],
    state: {sumsOf: 'register_column'},
    closer: {view: 'owners', label: 'See who computes what'},
    mount(app, {controls, picture, showFacts}) {
        const cases = listCases(app);
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(app.segments({key: 'sumsOf', label: 'sums of a thread, rows x columns',
                                      options: cases}));
        return () => {
            const chosen = cases.find(one => one.value === app.state.sumsOf) ?? cases[0];
            const tile = app.findRowTile(chosen.value);
            const {m, n, k} = app.ownProduct;
            const own = app.explain({m, n, k, kernel: chosen.value, tile});
            const {owners} = app.model.findOwners({kernel: chosen.value, tile});
            const owned = findOwned(owners, 0);
            const words = WARP_THREADS * own.shared_load_requests / (own.issued_flops / 2);
            shown.show(drawOwners(app.svg, owners, 0, owned,
                                  {rowCount: own.tile_rows, colCount: own.tile_cols},
                                  `thread 0 owns ${chosen.label} elements`,
                                  app.measureWidth(picture, SIDE) - MARKS),
                ['what', 'count'], [['rows', owned.rows.size], ['columns', owned.cols.size]],
                `The ${own.tile_rows} x ${own.tile_cols} tile of ${chosen.value}: the elements ` +
                'of thread 0 solid, those of its warp striped');
            showFacts([['words read for a product', formatCount(words)],
                       ['sums a thread', owned.rows.size * owned.cols.size],
                       ['threads a block', own.threads_per_block],
                       ['registers a thread', own.registers_per_thread],
                       ['predicted time (estimate)',
                        own.is_legal ? formatTime(own.predicted_s) : '-']]);
        };
    },
};
