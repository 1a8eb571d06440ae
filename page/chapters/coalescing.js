// Chapter: the same bytes are quick or slow to read, by how a warp's lanes lie.
import {makeScroll} from '../parts/drawing.js';
import {formatBytes, formatCount, formatTime} from '../parts/format.js';
import {drawSectors} from '../pictures/accesses_picture.js';
import {findRequest} from './requests.js';

const TILE = 32;
const LINES_MOST = 12;
const CASES = [{value: 'naive', label: 'down a column of A', space: 'A'},
               {value: 'coalesced', label: 'along a row of B', space: 'B'}];

export default {
    title: 'Coalescing: a warp reads side by side',
    idea: ['The 32 threads of a warp load at once, and memory moves sectors of 32 bytes. If the ' +
           'lanes go down a column, each touches a sector of its own and uses one eighth of it. ' +
           'If they go along a row, four sectors serve all 32.'],
    state: {lanes: 'naive'},
    closer: {view: 'accesses', label: 'See the requests of every kernel'},
    mount(app, {controls, picture, showFacts}) {
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(app.segments({key: 'lanes', label: 'the lanes of the warp go',
                                      options: CASES}));
        return () => {
            const chosen = CASES.find(one => one.value === app.state.lanes) ?? CASES[0];
            const found = findRequest(app, chosen.value, TILE, one => one.space === chosen.space);
            const {m, n, k} = app.ownProduct;
            const own = app.explain({m, n, k, kernel: chosen.value, tile: TILE});
            if (!found)
                return;
            const {request} = found;
            const moved = 32 * request.sector_count;
            shown.show(makeScroll(app.html, drawSectors(app.svg, request,
                                                        `lanes ${chosen.label}`, LINES_MOST)),
                ['what', 'count'], [['sectors', request.sector_count], ['bytes moved', moved]],
                'One load of a warp: the number of each lane on the bytes that it asks for. A ' +
                'solid frame is a sector that moves');
            showFacts([['bytes asked for', formatBytes(128)], ['bytes moved', formatBytes(moved)],
                       ['sectors', request.sector_count],
                       [`sectors in your ${m} x ${n} x ${k}`, own.global_load_sectors],
                       ['predicted time (estimate)', own.is_legal ? formatTime(own.predicted_s)
                                                                  : '-'],
                       ['FLOP a byte, unchanged', formatCount(own.flop_per_byte)]]);
        };
    },
};
