// This module makes the stage of a walk: player, words, picture, the line of the kernel, counters.
// The view "tile by tile" and the guided path show it.
import {makeTiling} from '../facts/tiling.js';
import {listenToClicks} from '../parts/drawing.js';
import {formatCount} from '../parts/format.js';
import {makeLayout} from './walk_layout.js';
import {drawWalk} from './walk_picture.js';
import {countDone, makeWalk} from './walk_plan.js';
import {getBeat, makePlayer} from './walk_player.js';
import {describeSource} from './walk_source.js';
import {listMoves, showShared, showSums} from './walk_tables.js';
import {makeValues} from './walk_values.js';
import {describePhase, describeThread, nameWho, PHASE_NAMES} from './walk_words.js';

const PICTURE_HEIGHT = 480; // leaves room for the controls on a screen of 900 pixels
const PICTURE_MOST = 1000;

function makeNames(walk, tiling) {
    const isMany = tiling.rows * tiling.cols > 64;
    return {global: 'Global memory: A, B, D',
            shared: walk.hasShared ? 'One block: shared memory, registers'
                                   : 'One block: registers alone',
            sums: isMany ? `${tiling.rows} x ${tiling.cols} sums in registers`
                         : 'sums in registers'};
}

function makeView(app, shown, width, height = PICTURE_HEIGHT) {
    const explained = app.explain(shown);
    if (explained.error)
        return {refusal: explained.error};
    if (!explained.is_legal && explained.family === 'tiled')
        return {refusal: explained.reason};
    const tiling = makeTiling(explained);
    const walk = makeWalk(tiling);
    const threads = app.model.findOwners(shown);
    return {shown, explained, tiling, walk, threads, owners: threads.owners,
            block: tiling.getBlock(shown.blockRow, shown.blockCol),
            place: walk.getPlace(shown.at),
            thread: Math.min(Math.max(0, shown.thread), explained.threads_per_block - 1),
            layout: makeLayout(tiling, width, height), names: makeNames(walk, tiling),
            values: makeValues(app, tiling, explained.kernel)};
}

const isInside = (box, x, y) => x >= box.x && y >= box.y && x < box.x + box.width &&
    y < box.y + box.height;

// Returns what a click chooses, as changes of the state: a block of D, or a thread of the block.
function findClicked({tiling, owners, layout: {matrices, tiles}}, x, y) {
    const all = matrices.d.getBox(0, 0, tiling.m, tiling.n);
    if (isInside(all, x, y))
        return {blockRow: Math.floor((y - all.y) / matrices.d.perRow / tiling.rows),
                blockCol: Math.floor((x - all.x) / matrices.d.perCol / tiling.cols), at: 0};
    const tile = tiles.d.getBox(0, 0, tiling.rows, tiling.cols);
    return isInside(tile, x, y) ? {thread: owners[Math.floor((y - tile.y) / tiles.d.perRow)][
        Math.floor((x - tile.x) / tiles.d.perCol)]} : {};
}

const showClock = (html, {walk, place}) =>
    html('ol', {class: 'clock', 'aria-label': 'phases of a step'}, [...walk.phases, 'store'].map(
        (name, i) => html('li', {'aria-current': i === place.index ? 'step' : null},
                          PHASE_NAMES[name])));

function showCounters(html, app, view) {
    const {tiling, block, place, explained} = view;
    const done = countDone(app, view);
    const one = (label, name, text) => html('div', {}, [
        html('dt', {}, label), html('dd', {'data-count': name}, text)]);
    const of = (part, whole) => `${formatCount(part)} of ${formatCount(whole)}`;
    return html('dl', {class: 'counters'}, [
        one('tile of D', 'block', `row ${block.row}, column ${block.col} of ` +
            `${tiling.downCount} x ${tiling.acrossCount}`),
        one('step along k', 'step', `${place.step + 1} of ${tiling.stepCount}`),
        one('elements read from A and B', 'loaded',
            of(done.loadedElems, explained.global_read_elems)),
        one('uses of what was read', 'uses', of(done.usedElems, explained.naive_read_elems)),
        one('FLOP', 'issued', of(done.issuedFlops, explained.issued_flops)),
        one('of them useful', 'useful', of(done.usefulFlops, explained.useful_flops)),
    ]);
}

function showThread(html, view) {
    return html('div', {class: 'thread-scale'}, [
        html('h2', {}, nameWho(view)),
        html('ul', {class: 'terms'}, describeThread(view).map(line => html('li', {}, line)))]);
}

const sayNumbers = ({values}) => 'A is 0, 1, 2, ... by rows, B 100, 101, .... ' +
    (values.isTraced ? 'Sums and moves are those of the simulator, which ran this very kernel. ' :
     values.hasSums ? 'The page forms the sums, in FP32 and in the order of k. ' :
     'The page forms no sums over so long a k. ') +
    'The counts are the model\'s. A GPU works on many blocks at once; here one follows the other.';

// Makes the parts of a stage that stay while it moves.
function makeParts(app) {
    const {html} = app;
    const place = name => html('div', {class: name});
    return {clock: place('stage-clock'), counters: place('stage-counters'),
            code: place('stage-code'), thread: place('stage-thread'),
            tables: place('stage-tables'), note: html('p', {class: 'hint'}),
            status: html('p', {class: 'status', role: 'status'}),
            picture: app.figure('A, B and D')};
}

function showParts(app, parts, view, isPlaying) {
    const {html} = app;
    const {tiling, block, place} = view;
    // The status is not announced during play: a screen reader would read without end.
    parts.status.setAttribute('aria-live', isPlaying ? 'off' : 'polite');
    parts.status.textContent = `${PHASE_NAMES[place.phase]}: ${describePhase(view)}`;
    const label = `tile of D at row ${block.row}, column ${block.col}, step ` +
        `${place.step + 1} of ${tiling.stepCount}`;
    const drawing = drawWalk(app.svg, view, label);
    drawing.style.setProperty('--beat', `${Math.min(1.2, getBeat(app.state))}s`);
    listenToClicks(drawing, (x, y) => app.set(findClicked(view, x, y)));
    const {columns, rows} = listMoves(view);
    parts.picture.show(drawing, columns, rows, `A, B and D: ${label}`);
    parts.clock.replaceChildren(showClock(html, view));
    parts.counters.replaceChildren(showCounters(html, app, view));
    parts.code.replaceChildren(...[describeSource(html, app, view)].filter(Boolean));
    parts.thread.replaceChildren(showThread(html, view));
    parts.tables.replaceChildren(...showShared(html, view), showSums(html, view));
    parts.note.textContent = sayNumbers(view);
}

// Draws one place of a walk that no player moves.
export function drawStill(app, shown, width, height = PICTURE_HEIGHT) {
    const drawing = drawWalk(app.svg, makeView(app, shown, width, height), 'a place of the walk');
    drawing.style.setProperty('--beat', '1.2s');
    return drawing;
}

// Makes a stage: {node, draw(), play()}. getShown() returns the walk that is shown, {m, n, k,
// kernel, tile, blockRow, blockCol, at, thread}; `controls` stand in the player's bar. A walk that
// is refused calls showRefusal(reason), which returns what is shown in its place.
export function makeStage(app, {getShown, controls = [], showRefusal = reason => reason}) {
    const {html, svg} = app;
    const parts = makeParts(app);
    const refused = html('div');
    const stage = html('div', {class: 'stage'}, [
        html('div', {class: 'stage-words'}, [parts.clock, parts.status]),
        html('div', {class: 'stage-picture'}, [parts.picture.node]),
        html('div', {class: 'stage-side'}, [parts.code, parts.thread]),
        parts.counters]);
    const more = html('details', {class: 'stage-more'}, [
        html('summary', {}, 'Shared memory and registers as tables'), parts.tables, parts.note]);
    const node = html('div', {class: 'stage-frame'});
    const measure = () => Math.max(280, Math.min(PICTURE_MOST,
        parts.picture.node.clientWidth || node.clientWidth || PICTURE_MOST));
    let view = makeView(app, getShown(), PICTURE_MOST);
    const player = makePlayer(app, () => view, controls);
    node.append(player.node, refused, stage, more);

    function draw() {
        view = makeView(app, getShown(), measure());
        player.show();
        stage.hidden = more.hidden = Boolean(view.refusal);
        refused.replaceChildren(...view.refusal ? [showRefusal(view.refusal)].flat() : []);
        if (!view.refusal)
            showParts(app, parts, view, player.isPlaying());
    }
    return {node, draw, play: player.play};
}
