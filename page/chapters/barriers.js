// Chapter: a barrier is taken out, and the simulator finds the race.
import {drawRace} from '../pictures/race_picture.js';

const SIDE = 2;
const CASES = [{value: 0, label: 'both barriers'}, {value: 1, label: 'without the first'},
               {value: 2, label: 'without the second'}];
const KINDS = {race: 'data race', never_written: 'read before it was written'};
const FOUND_MOST = 4;

const findTrace = (app, barrier) => app.data.traces.find(one => one.family === 'tiled' &&
    one.m === 4 && one.tile_rows === SIDE && one.without_barrier === barrier);

// Returns the sums with which the threads of the first block end, row by row.
function readSums(trace) {
    const {sums} = trace.phases.filter(({block: [x, y]}) => x === 0 && y === 0)
        .findLast(phase => phase.sums.length);
    return Array.from({length: SIDE * SIDE}, (_, i) => sums.find(({thread: [x, y]}) =>
        y * SIDE + x === i).value);
}

// Returns the words of shared memory that the findings name.
const listRaced = trace => new Set(trace.findings.map(
    one => Number(/byte (\d+)/.exec(one.place)?.[1]) / 4));

const nameThread = ([x, y]) => `thread (${y}, ${x})`;

function describe({kind, line, count, thread, other_thread: other, other_line: otherLine}) {
    return `${KINDS[kind] ?? kind}, ${count} times: ${nameThread(thread)} at line ${line}` +
        (other ? ` against ${nameThread(other)} at line ${otherLine ?? line}` : '');
}

// Shows the loop of the kernel, with the barrier that is missing struck out.
function showLoop(app, barrier) {
    const {lines} = app.sources.tiled;
    const first = lines.findIndex(line => line.includes('for (int k0'));
    const body = lines.slice(first, lines.findIndex((line, i) => i > first && /^ {4}}/.test(line)) +
                             1);
    let count = 0;
    return app.html('pre', {class: 'loop', tabindex: 0}, body.map(line => {
        const isBarrier = line.includes('__syncthreads');
        count += isBarrier;
        const isOut = isBarrier && count === barrier;
        const text = `${line.replace(/ *\/\*.*/, '').replace(/^ {4}/, '')}\n`;
        return app.html(isOut ? 'del' : 'span', {class: isBarrier ? 'here' : null}, text);
    }));
}

export default {
    title: 'Barriers: why everybody waits',
    idea: ['Threads run at different speeds. The first barrier keeps a thread from reading an ' +
           'element that another has yet to write, the second from overwriting one that another ' +
           'still reads. Remove one: the simulator runs the kernel and finds the race.'],
    state: {barrier: 0},
    closer: {view: 'walk', label: 'Walk through the barriers',
             state: {m: 4, n: 4, k: 4, kernel: 'tiled', tile: 2, at: 1}},
    mount(app, {controls, picture, showFacts}) {
        const shown = app.figure('');
        picture.append(shown.node);
        controls.append(app.segments({key: 'barrier', label: 'the loop runs with',
                                      options: CASES}));
        return () => {
            const trace = findTrace(app, app.state.barrier);
            const whole = findTrace(app, 0);
            if (!trace || !whole)
                return;
            const sums = readSums(trace);
            const right = readSums(whole);
            const wrongCount = sums.filter((sum, i) => sum !== right[i]).length;
            const found = trace.findings.slice(0, FOUND_MOST).map(describe);
            shown.show(app.html('div', {class: 'race-beside'}, [
                drawRace(app.svg, SIDE, listRaced(trace), sums, right,
                         `${wrongCount} of ${sums.length} sums are wrong`),
                app.html('div', {}, [showLoop(app, app.state.barrier), app.html('ul', {},
                    (found.length ? found : ['The simulator finds no race.'])
                        .map(text => app.html('li', {}, text)))])]),
                ['kind', 'line', 'times', 'place'], trace.findings.map(
                    one => [KINDS[one.kind] ?? one.kind, one.line, one.count, one.place]),
                'The simulated run of the first block of 4 x 4 x 4, tile 2');
            showFacts([['races found', trace.findings.length],
                       ['wrong sums', `${wrongCount} of ${sums.length}`]]);
        };
    },
};
