// Chapter: every thread of the naive kernel reads a row and a column for itself. The simulator
// traced the reads.
import {drawReads} from '../pictures/heat_picture.js';

const SIDE = 4;

const findTrace = app => app.data.traces.find(({family, m, n, k, tile_rows: tile}) =>
    family === 'naive' && m === SIDE && n === SIDE && k === SIDE && tile === SIDE);

// Returns the moves of each thread, in the order of the threads.
function groupMoves(trace) {
    const threads = new Map();
    for (const move of trace?.phases.flatMap(phase => phase.moves) ?? []) {
        const key = `${move.thread[1]} ${move.thread[0]}`;
        threads.set(key, [...threads.get(key) ?? [], move]);
    }
    return [...threads].sort(([left], [right]) => left.localeCompare(right))
        .map(([, moves]) => moves);
}

export default {
    title: 'Naive: each thread reads for itself',
    idea: ['One thread forms one element of D: it reads a whole row of A and a column of B. The ' +
           'thread of the next row reads the same column again, that of the next column the same ' +
           'row. In the end each element of A has been read n times, and each of B m times.'],
    state: {readers: 6},
    closer: {view: 'reads', label: 'Count the reads of any product'},
    mount(app, {controls, picture, showFacts}) {
        const moves = groupMoves(findTrace(app));
        const shown = app.figure('Reads of each element of A and B, by 4 x 4 threads');
        picture.append(shown.node);
        controls.append(app.slider({key: 'readers', label: 'threads that have run:', low: 0,
                                    high: moves.length}));
        return () => {
            const done = moves.slice(0, Math.max(0, app.state.readers)).flat();
            const reads = new Map();
            const formed = new Set();
            for (const {space, index} of done) {
                const key = `${Math.floor(index / SIDE)} ${index % SIDE}`;
                if (space === 'D')
                    formed.add(key);
                else
                    reads.set(`${space} ${key}`, (reads.get(`${space} ${key}`) ?? 0) + 1);
            }
            const count = [...reads.values()].reduce((sum, one) => sum + one, 0);
            const {m, n, k} = app.ownProduct;
            const own = app.explain({m, n, k, kernel: 'naive', tile: 16});
            shown.show(drawReads(app.svg, {m: SIDE, n: SIDE, k: SIDE}, reads, formed,
                `${count} reads by ${app.state.readers} threads`, app.measureWidth(picture, 600)),
                ['element', 'reads'], [...reads].map(([key, value]) => {
                    const [name, row, col] = key.split(' ');
                    return [`${name}(${row}, ${col})`, value];
                }));
            showFacts([['reads so far', count], ['different elements', reads.size],
                       ['reads of each', reads.size ? count / reads.size : 0],
                       [`reads in your ${m} x ${n} x ${k}`, own.global_read_elems ?? '-']]);
        };
    },
};
