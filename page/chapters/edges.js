// Chapter: where tiles do not divide a matrix, threads work on zeros.
import {formatShare} from '../parts/format.js';
import {drawStill} from '../walk/walk_stage.js';

const TILE = 4;
const SIDE_MOST = 12;

export default {
    title: 'Edges: tiles that reach outside',
    idea: ['Tiles cover D as floor tiles cover a room: the last ones are cut. Their threads load ' +
           'zeros from outside the matrices and store nothing outside D, but multiply all the ' +
           'same. Change the side and see which share of the work is useful.'],
    state: {side: 6},
    closer: {view: 'ladder', label: 'See cliffs over sizes'},
    mount(app, {controls, picture, showFacts}) {
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(app.slider({key: 'side', label: 'm = n = k:', low: 1, high: SIDE_MOST}));
        return () => {
            const side = Math.min(Math.max(1, app.state.side), SIDE_MOST);
            const last = Math.ceil(side / TILE) - 1;
            const sizes = {m: side, n: side, k: side, kernel: 'edges', tile: TILE};
            const told = app.explain(sizes);
            const {m, n, k} = app.ownProduct;
            const own = app.explain({m, n, k, kernel: 'edges', tile: 32});
            shown.show(drawStill(app, {...sizes, blockRow: last, blockCol: last, at: 4 * last + 2,
                                       thread: 0}, app.measureWidth(picture, 1000)),
                ['what', 'count'], [['FLOP that count', told.useful_flops],
                                    ['FLOP issued', told.issued_flops]],
                'The last block multiplies its last step; hatched: outside, zeros');
            showFacts([['FLOP that count', told.useful_flops], ['FLOP issued', told.issued_flops],
                       ['share that counts', formatShare(told.useful_flops / told.issued_flops)],
                       ['blocks cut by an edge', `${told.edge_block_count} of ${told.block_count}`],
                       [`share in your ${m} x ${n} x ${k}, T = 32`,
                        formatShare(own.useful_flops / own.issued_flops)]]);
        };
    },
};
