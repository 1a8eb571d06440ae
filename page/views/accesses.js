// This view shows coalescing and banks: what the 32 lanes of a warp ask for at each access of a
// kernel, as the simulator saw it.
import {formatBytes, formatCount} from '../parts/format.js';
import {drawBanks, drawSectors} from '../pictures/accesses_picture.js';
import {makeScroll} from '../parts/drawing.js';
import {makeRange} from '../parts/range.js';
import {explainMissing, findRequests} from '../facts/simulated.js';

const SECTOR_BYTES = 32;
const isColumnOfB = one => one.space === 'S' && !one.is_write && new Set(one.lanes).size > 1;
const PRESETS = [
    {label: 'Rung 1: a warp down a column of A', state: {kernel: 'naive', tile: 32},
     isChosen: one => one.space === 'A'},
    {label: 'Rung 2: a warp along a row of B', state: {kernel: 'coalesced', tile: 32},
     isChosen: one => one.space === 'B'},
    {label: 'Rung 5: B transposed, 32 turns', state: {kernel: 'transposed', tile: 32},
     isChosen: isColumnOfB},
    {label: 'Rung 6: the cure, a column of padding', state: {kernel: 'padded', tile: 32},
     isChosen: isColumnOfB},
];

const isOfOneLine = (left, right) => left.line === right.line && left.space === right.space &&
    left.caller_line === right.caller_line && left.is_write === right.is_write;

// Groups requests by the access that makes them, in the order of the source's lines.
export function groupRequests(requests) {
    const groups = [];
    for (const request of requests) {
        const group = groups.find(one => isOfOneLine(one[0], request));
        if (group)
            group.push(request);
        else
            groups.push([request]);
    }
    return groups.sort(([left], [right]) =>
        (left.caller_line || left.line) - (right.caller_line || right.line));
}

const PLACES = {A: 'A', B: 'B', D: 'D', S: 'shared memory'};

function nameGroup([request]) {
    const verb = request.is_in_background ? 'copies to' : request.is_write ? 'writes' : 'reads';
    const by = request.caller_line ? ` (called at ${request.caller_line})` : '';
    return `line ${request.line}${by} ${verb} ${PLACES[request.space]}`;
}

const countLanes = request => request.lanes.filter(lane => lane !== null).length;
const sumTurns = request => request.groups.reduce((sum, group) => sum + group.turns, 0);

function explainRequest(request) {
    const lanes = countLanes(request);
    const bytes = lanes * request.elem_count * request.elem_bytes;
    if (request.space !== 'S') {
        const moved = request.sector_count * SECTOR_BYTES;
        return `${lanes} lanes ask for ${bytes} bytes; they lie in ${request.sector_count} ` +
            `${request.sector_count === 1 ? 'sector' : 'sectors'}, ${moved} bytes.`;
    }
    const turns = sumTurns(request);
    const least = request.groups.filter(group => group.turns > 0).length;
    return `${lanes} lanes ask for ${bytes} bytes: ${turns} ${turns === 1 ? 'turn' : 'turns'} of ` +
        `shared memory, ${turns - least} of them bank conflicts.`;
}

// Returns one row for each lane: what it asks for, and where that lies.
function listLanes(request, simulation) {
    const isShared = request.space === 'S';
    const cols = request.space === 'A' ? simulation.k : simulation.n;
    const columns = isShared ? ['lane', 'word', 'words', 'bank'] :
        ['lane', 'row', 'column', 'elements', 'byte', 'sector of the matrix'];
    const rows = request.lanes.flatMap((index, lane) => index === null ? [] : [isShared ?
        [lane, index, request.elem_count, index % 32] :
        [lane, Math.floor(index / cols), index % cols, request.elem_count,
         request.elem_bytes * index, Math.floor(request.elem_bytes * index / SECTOR_BYTES)]]);
    return {columns, rows};
}

function showLine(html, app, request, simulation) {
    const counts = simulation.lines.find(one => one.file === request.file &&
                                                one.line === request.line);
    const caller = app.sources[simulation.family]?.lines[request.caller_line - 1];
    const code = html('pre', {class: 'one-line', tabindex: 0}, [
        caller ? `${request.file}:${request.caller_line}  ${caller.trim()}\n` : null,
        `${request.file}:${request.line}  ${request.source.trim()}`]);
    if (!counts)
        return code;
    const {m, n, k} = simulation;
    const global = counts.global_load_requests + counts.global_store_requests;
    const shared = counts.shared_load_requests + counts.shared_store_requests;
    const bytes = counts.global_read_bytes + counts.global_write_bytes;
    const sectors = counts.global_load_sectors + counts.global_store_sectors;
    return [code, html('p', {class: 'hint'}, [`This line in ${m} x ${n} x ${k}: `, [
        global ? `${formatCount(global)} requests of global memory for ${formatBytes(bytes)} in ` +
            `${formatCount(sectors)} sectors` : null,
        shared ? `${formatCount(shared)} requests of shared memory with ` +
            `${formatCount(counts.bank_conflicts)} bank conflicts` : null,
    ].filter(Boolean).join('; '), simulation.is_exact ? '.' :
        ', scaled up from the blocks that ran.'])];
}

export default {
    id: 'accesses',
    title: 'Coalescing and banks',
    state: {access: 0, request: 0},
    mount(root, app) {
        const {html, svg} = app;
        const find = () => app.explain().error ? null : findRequests(app);
        const getGroups = () => groupRequests(find()?.requests ?? []);
        const getGroup = () => {
            const groups = getGroups();
            return groups[Math.min(Math.max(0, app.state.access), groups.length - 1)] ?? [];
        };
        const access = app.choice({key: 'access', label: 'access', options: () =>
            getGroups().map((group, i) => ({value: i, label: nameGroup(group)}))});
        const request = makeRange(app, {key: 'request', label: 'request of this access',
            getHigh: () => getGroup().length - 1,
            format: index => `${index + 1} of the first ${getGroup().length}`});
        const picture = app.figure('Request');
        const verdict = html('p', {class: 'status', role: 'status'});
        const line = html('div');
        const note = html('p', {class: 'hint'});
        const missing = html('div');
        const shown = html('div', {}, [html('div', {class: 'controls'}, [access, request.node]),
                                       verdict, line, picture.node, note]);
        const choose = preset => {
            app.set(preset.state);
            const groups = getGroups();
            const group = groups.findIndex(one => one.some(preset.isChosen));
            if (group >= 0)
                app.set({access: group, request: groups[group].findIndex(preset.isChosen)});
        };
        root.append(html('div', {class: 'controls', role: 'group', 'aria-label': 'examples'},
                         PRESETS.map(preset => app.button(preset.label, () => choose(preset)))),
                    missing, shown);

        const draw = () => {
            const explained = app.explain();
            const simulation = find();
            shown.hidden = !simulation;
            missing.replaceChildren();
            if (!simulation) {
                missing.append(explainMissing(app));
                return;
            }
            request.show();
            const one = getGroup()[request.get()];
            const isShared = one.space === 'S';
            const text = explainRequest(one);
            const table = listLanes(one, simulation);
            verdict.textContent = text;
            line.replaceChildren(...[showLine(html, app, one, simulation)].flat());
            const drawOne = isShared ? drawBanks : drawSectors;
            picture.show(makeScroll(html, drawOne(svg, one, text)),
                table.columns, table.rows, isShared ?
                'Lanes on the 32 banks: what stands in one row is served in one turn' :
                'Lanes on sectors of 32 bytes, four to a line of 128 bytes');
            const {bank_conflicts: written, counter_bank_conflicts: counted} = simulation;
            note.textContent = `The first warp of the first block of ${explained.kernel}, in ` +
                `${simulation.m} x ${simulation.n} x ${simulation.k}, from the simulator. ` +
                (isShared ? 'Equal words go to many lanes in one turn (0-31: lanes 0 to 31).' :
                 'An empty place in a sector with a solid frame is moved and not asked for.') +
                (isShared && written !== counted ? ` The kernel has ${formatCount(written)} bank ` +
                 `conflicts as its source is written; a GPU's counters see ` +
                 `${formatCount(counted)}, as nvcc merges reads of neighbouring words.` : '');
        };
        app.on('change', draw);
        draw();
    },
};
