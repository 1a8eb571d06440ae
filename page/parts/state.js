// The state of the page is kept in the URL's hash so that every view can be linked.

export const SIZE_MAX = 1000000;

// SHARED holds the keys that every view shares, with their defaults. A view adds keys of its own
// (its `state`). The type of a default is the type of the value.
const SHARED = {view: '', m: 256, n: 256, k: 256, kernel: 'edges', tile: 16, chip: 'h200',
                theme: 'auto', mode: 'cold'};
const LIMITS = {m: [1, SIZE_MAX], n: [1, SIZE_MAX], k: [1, SIZE_MAX], tile: [1, 128]};
const TEXT_MAX = 200;
const TEXT_SHOWN = 40; // characters shown of refused text
const WRITE_MS = 100; // a browser refuses a page that sets its address 200 times in 10 s

const formatNumber = number => number.toLocaleString('en');

// Returns {value} if a text is a whole number from `low` to `high`, otherwise {refusal}.
export function readWhole(text, low, high) {
    const value = Number(text);
    return text.trim() !== '' && Number.isInteger(value) && value >= low && value <= high
        ? {value}
        : {refusal: `a whole number from ${formatNumber(low)} to ${formatNumber(high)}`};
}

// Returns {value} or {refusal} for a key whose default is `fallback`.
function readValue(key, text, fallback, options) {
    if (options && !options.includes(text))
        return {refusal: `one of ${options.join(', ')}`};
    if (typeof fallback === 'string')
        return {value: text.slice(0, TEXT_MAX)};
    if (LIMITS[key])
        return readWhole(text, ...LIMITS[key]);
    const value = Number(text);
    return text.trim() !== '' && Math.abs(value) <= 1e9 ? {value} : {refusal: 'a number'};
}

// Makes the state. `options` lists the allowed values of a key that has only a few. settle(state,
// keys) runs after `keys` were set and changes what does not go with the rest.
export function makeState(defaults, options, settle) {
    const base = {...SHARED, ...defaults};
    const state = {...base};
    const listeners = [];
    let refusals = []; // refusals of the address that was read last
    let writing = 0; // the timer of the next write; 0 means none

    const take = (key, text) => readValue(key, text, base[key], options[key]);
    function read() {
        const given = new URLSearchParams(location.hash.slice(1));
        const asked = Object.keys(base).filter(key => given.has(key));
        const answers = Object.fromEntries(asked.map(key => [key, take(key, given.get(key))]));
        for (const key of Object.keys(base))
            state[key] = answers[key]?.value ?? base[key];
        settle(state, Object.keys(base));
        refusals = asked.filter(key => answers[key].value !== state[key]).map(key =>
            `${key} = ${given.get(key).slice(0, TEXT_SHOWN)}` +
            (answers[key].refusal ? `, pass ${answers[key].refusal}` : '') +
            `; ${state[key]} is shown`);
    }
    function write() {
        writing = 0;
        const changed = Object.entries(state).filter(
            ([key, value]) => key in base && value !== base[key]);
        history.replaceState(null, '', '#' + new URLSearchParams(changed));
    }
    const tell = keys => listeners.forEach(listener => listener(state, keys));

    read();
    addEventListener('hashchange', () => {
        clearTimeout(writing);
        writing = 0;
        read();
        tell(Object.keys(state));
    });
    return {
        state,
        // Returns what the address asked for and did not get, until something else is chosen.
        listRefusals: () => refusals,
        // Sets keys of the state. A refused value leaves the state as it is.
        set(changes) {
            const keys = Object.keys(changes).filter(key => key in base);
            const before = {...state};
            for (const key of keys)
                state[key] = take(key, String(changes[key])).value ?? state[key];
            settle(state, keys);
            const changed = Object.keys(base).filter(key => state[key] !== before[key]);
            if (changed.length === 0)
                return;
            refusals = [];
            writing ||= setTimeout(write, WRITE_MS);
            tell(changed);
        },
        listen: listener => listeners.push(listener),
    };
}
