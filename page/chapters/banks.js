// Chapter: shared memory has 32 banks, and lanes that meet in one wait for each other.
import {makeScroll} from '../parts/drawing.js';
import {formatTime} from '../parts/format.js';
import {drawBanks} from '../pictures/accesses_picture.js';
import {findRequest} from './requests.js';

const TILE = 32;
const TURNS_MOST = 12;
const CASES = [{value: 'transposed', label: '32 words'}, {value: 'padded', label: '33 words'}];
const isColumnOfB = one => one.space === 'S' && !one.is_write && new Set(one.lanes).size > 1;

export default {
    title: 'Banks: 32 doors to shared memory',
    idea: ['Shared memory serves one word of each of 32 banks in a turn. With rows of 32 words a ' +
           'column lies in one bank: 32 turns. One word of padding shifts each row by a bank: ' +
           'one turn.'],
    state: {rowWords: 'transposed'},
    closer: {view: 'accesses', label: 'See the requests of every kernel'},
    mount(app, {controls, picture, showFacts}) {
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(app.segments({key: 'rowWords', label: 'a row of the tile has',
                                      options: CASES}));
        return () => {
            const chosen = CASES.find(one => one.value === app.state.rowWords) ?? CASES[0];
            const found = findRequest(app, chosen.value, TILE, isColumnOfB);
            const {m, n, k} = app.ownProduct;
            const own = app.explain({m, n, k, kernel: chosen.value, tile: TILE});
            if (!found)
                return;
            const turns = found.request.groups.reduce((sum, group) => sum + group.turns, 0);
            shown.show(makeScroll(app.html, drawBanks(app.svg, found.request, `${turns} turns`,
                                                      TURNS_MOST)),
                ['what', 'count'], [['turns', turns]],
                'One read of a column by a warp: banks across, a row for each turn, the number ' +
                'of the lane in each word');
            showFacts([['turns', turns], ['bank conflicts', turns - 1],
                       [`conflicts in your ${m} x ${n} x ${k}`, own.bank_conflicts],
                       ['predicted time (estimate)',
                        own.is_legal ? formatTime(own.predicted_s) : '-']]);
        };
    },
};
