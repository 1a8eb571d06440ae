// This module holds the ladder's sources and what the simulator counted on each of their lines.
import * as ladder from 'ladder';

// Reads the comment that a rung begins with. Returns its fields, {Idea: '...', 'Changed since 3':
// '...'}, and the number of its lines.
function readFields(lines) {
    const fields = {};
    const fieldLineCount = lines.findIndex(text => text.includes('*/')) + 1;
    let name = null;
    for (const line of lines.slice(0, fieldLineCount)) {
        const match = /^ \* ([A-Z][\w ]*):\s+(.*)$/.exec(line);
        const more = /^ \*\s{3,}(\S.*)$/.exec(line);
        if (match)
            fields[name = match[1]] = match[2];
        else if (more && name)
            fields[name] += ` ${more[1]}`;
    }
    return {fields, fieldLineCount};
}

// Returns {family: {path, lines, fields, fieldLineCount, simulations}}. `simulations` holds the
// embedded simulations of the family's kernels by "KERNEL MxNxK".
export function readSources(data) {
    const sources = {};
    for (const [name, text] of Object.entries(ladder)) {
        const lines = text.trimEnd().split('\n');
        const family = name.replace(/^l\d+_/, '');
        sources[family] = {path: `src/kernels/ladder/${name}.cu`, lines, ...readFields(lines),
                           simulations: new Map()};
    }
    for (const simulation of data.simulations) {
        const {family, kernel, m, n, k} = simulation;
        sources[family]?.simulations.set(`${kernel} ${m}x${n}x${k}`, simulation);
    }
    return sources;
}
