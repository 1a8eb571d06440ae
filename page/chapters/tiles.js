// Chapter: a tile that is read once serves T times.
import {bars} from '../parts/chart.js';
import {formatBytes, formatCount} from '../parts/format.js';
import {drawStill} from '../walk/walk_stage.js';

const WALL = 32;    // side of the matrices of the picture
const HEIGHT = 380; // pixels of the picture
const SIDES = [1, 2, 4, 8, 16, 32];

export default {
    title: 'Tiles: read once, use T times',
    idea: ['The T x T threads of a block need T rows of A and T columns of B, and use each ' +
           'element T times. They copy a tile into shared memory once and read it there. Global ' +
           'reads fall to 1 / T.'],
    state: {lessonTile: 16},
    closer: {view: 'roofline', label: 'See every tile on the roofline'},
    mount(app, {controls, picture, showFacts}) {
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(app.slider({key: 'lessonTile', label: 'tile side T:',
                                    values: () => SIDES}));
        return () => {
            const {m, n, k} = app.ownProduct;
            const tile = SIDES.includes(app.state.lessonTile) ? app.state.lessonTile : SIDES[0];
            const naive = app.explain({m, n, k, kernel: 'naive', tile: 16});
            const tiled = app.explain({m, n, k, kernel: 'edges', tile});
            const all = SIDES.map(side => app.explain({m, n, k, kernel: 'edges', tile: side}));
            const list = [{one: naive, name: 'naive, no tile'},
                          ...all.map(one => ({one, name: `tile ${one.tile_rows}`}))];
            const width = app.measureWidth(picture, 960);
            const still = drawStill(app, {m: WALL, n: WALL, k: WALL, kernel: 'edges', tile,
                blockRow: 0, blockCol: 0, at: 2, thread: 0}, width, HEIGHT);
            const chart = bars({label: 'Bytes asked of global memory',
                width, list: list.map(({one, name}) => ({
                    name, value: one.global_read_bytes, series: one === naive ? 4 :
                        one.tile_rows === tile ? 2 : 1,
                    text: `${formatBytes(one.global_read_bytes)}, ` +
                        `${formatCount(one.flop_per_byte)} FLOP a byte`}))});
            shown.show(app.html('div', {}, [still, chart]),
                ['kernel', 'bytes', 'FLOP a byte', 'uses of each element'],
                list.map(({one, name}) => [name, one.global_read_bytes, one.flop_per_byte,
                                           one.reuse]),
                `A block of ${tile} x ${tile} threads in ${WALL} x ${WALL} x ${WALL}; below, the ` +
                `bytes that threads ask for in your ${m} x ${n} x ${k}`);
            showFacts([['naive reads', naive.global_read_elems],
                       ['reads with this tile', tiled.global_read_elems],
                       ['uses of each element', `${formatCount(tiled.reuse)} x`],
                       ['FLOP a byte', tiled.flop_per_byte],
                       ['shared memory a block', formatBytes(tiled.shared_bytes)],
                       ['threads a block', tiled.threads_per_block]]);
        };
    },
};
