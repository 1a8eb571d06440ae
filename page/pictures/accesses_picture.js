// This module draws a request of a warp on the lines of global memory or on the banks of shared
// memory.
const WORDS = 32;       // words of a line of 128 bytes, and the number of banks
const WORD_BYTES = 4;
const SECTOR_WORDS = 8; // words of a sector of 32 bytes
const CELL = 28;
const LEFT = 96;
const TOP = 18;

const TEXT_MOST = 4; // characters of a cell

// Names the lanes of a cell in few letters: "7", "0-31", or "x16" if they are not neighbours or
// their numbers are too long.
export function formatLanes(lanes) {
    const [first, last] = [lanes[0], lanes[lanes.length - 1]];
    const run = `${first}-${last}`;
    return lanes.length === 1 ? String(first) :
           last - first === lanes.length - 1 && run.length <= TEXT_MOST ? run : `x${lanes.length}`;
}

// Returns the words, {word: lanes}, that the lanes first .. first + count - 1 of a request touch.
function collectWords(request, first = 0, count = WORDS) {
    const words = new Map();
    request.lanes.slice(first, first + count).forEach((start, i) => {
        if (start === null)
            return;
        const from = start * request.elem_bytes / WORD_BYTES;
        const to = from + request.elem_count * request.elem_bytes / WORD_BYTES;
        for (let word = Math.floor(from); word < to; word++) {
            if (!words.has(word))
                words.set(word, []);
            words.get(word).push(first + i);
        }
    });
    return words;
}

// Returns the lines of 128 bytes that a request touches, in order: {line, words: {place in the
// line: lanes}}.
export function collectLines(request) {
    const lines = new Map();
    for (const [word, lanes] of collectWords(request)) {
        const line = Math.floor(word / WORDS);
        if (!lines.has(line))
            lines.set(line, new Map());
        lines.get(line).set(word % WORDS, lanes);
    }
    return [...lines].sort(([left], [right]) => left - right)
        .map(([line, words]) => ({line, words}));
}

// Returns the groups of lanes that shared memory serves together, each with a stack of words for
// each bank.
export function collectBanks(request) {
    return request.groups.map(group => {
        const banks = Array.from({length: WORDS}, () => []);
        for (const [word, lanes] of collectWords(request, group.first_lane, group.lane_count))
            banks[word % WORDS].push({word, lanes});
        return {...group, banks, height: Math.max(...banks.map(stack => stack.length))};
    });
}

function drawCell(svg, x, y, text, kind, title) {
    return [svg('rect', {x, y, width: CELL, height: CELL, class: `word ${kind}`},
                svg('title', {}, title)),
            svg('text', {x: x + CELL / 2, y: y + CELL / 2, class: 'cell',
                         style: 'font-size: 11px'}, text)];
}

const drawSide = (svg, y, text) =>
    svg('text', {x: LEFT - 8, y: y + CELL / 2, class: 'side'}, text);

function frame(svg, height, label, nodes) {
    const width = LEFT + WORDS * CELL;
    return svg('svg', {viewBox: `0 0 ${width + 2} ${height + 2}`, width: width + 2, role: 'img',
                       'aria-label': label, class: 'accesses'}, nodes.flat(Infinity));
}

// Says how many rows a drawing leaves out below its last one.
const drawRest = (svg, y, count, noun) => count > 0
    ? svg('text', {x: LEFT, y: y + CELL / 2 + 4, class: 'rest'}, `and ${count} more ${noun}`) : [];

// Draws a row for each line of 128 bytes that a request touches, the first `most` of them.
export function drawSectors(svg, request, label, most = WORDS) {
    const all = collectLines(request);
    const lines = all.slice(0, most);
    const nodes = Array.from({length: WORDS / SECTOR_WORDS}, (_, i) => svg('text', {
        x: LEFT + (i + 0.5) * SECTOR_WORDS * CELL, y: 11, class: 'head'}, `sector ${i}`));
    lines.forEach(({line, words}, i) => {
        const y = TOP + i * CELL;
        nodes.push(drawSide(svg, y, `${request.space} + ${line * WORDS * 4} B`));
        for (let sector = 0; sector < WORDS / SECTOR_WORDS; sector++) {
            const places = Array.from({length: SECTOR_WORDS}, (_, j) => sector * SECTOR_WORDS + j);
            const isTouched = places.some(place => words.has(place));
            const x = LEFT + sector * SECTOR_WORDS * CELL;
            for (const place of isTouched ? places : []) {
                const lanes = words.get(place);
                nodes.push(drawCell(svg, LEFT + place * CELL, y, lanes ? formatLanes(lanes) : '',
                    lanes ? 'asked' : 'unused', lanes ? `element ${line * WORDS + place}, lanes ` +
                    lanes.join(' ') : 'moved, not asked for'));
            }
            nodes.push(svg('rect', {x, y, width: SECTOR_WORDS * CELL, height: CELL,
                                    class: isTouched ? 'sector' : 'sector-idle'}));
        }
    });
    const rest = all.length - lines.length;
    nodes.push(drawRest(svg, TOP + lines.length * CELL, rest, 'lines of 128 bytes'));
    return frame(svg, TOP + (lines.length + (rest > 0)) * CELL, label, nodes);
}

// Draws one row for each turn of each group, the first `most` of a group: a row holds the words
// that are served at once.
export function drawBanks(svg, request, label, most = WORDS) {
    const groups = collectBanks(request);
    const nodes = Array.from({length: WORDS}, (_, bank) => svg('text', {
        x: LEFT + (bank + 0.5) * CELL, y: 11, class: 'head'}, String(bank)));
    let y = TOP;
    for (const group of groups) {
        for (let turn = 0; turn < Math.min(group.height, most); turn++, y += CELL) {
            const last = group.first_lane + group.lane_count - 1;
            nodes.push(drawSide(svg, y, turn > 0 ? `turn ${turn + 1}` : groups.length === 1 ?
                'turn 1' : `${group.first_lane}-${last}: turn 1`));
            group.banks.forEach((stack, bank) => {
                const held = stack[turn];
                nodes.push(held ? drawCell(svg, LEFT + bank * CELL, y, formatLanes(held.lanes),
                    turn > 0 ? 'conflict' : 'asked', `word ${held.word}, bank ${bank}, lanes ` +
                    held.lanes.join(' ')) : svg('rect', {x: LEFT + bank * CELL, y, width: CELL,
                                                         height: CELL, class: 'word idle'}));
            });
        }
        if (group.height > most) {
            nodes.push(drawRest(svg, y, group.height - most, 'turns'));
            y += CELL;
        }
    }
    return frame(svg, y, label, nodes);
}
