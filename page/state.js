// The state of the page, kept in the URL's hash so that every view can be linked.

const SIZE_MAX = 1000000;

// What every view shares. A view adds keys of its own (its `state`); the type of a default is the
// type of the value.
const SHARED = {view: '', m: 256, n: 256, k: 256, kernel: 'edges', tile: 16, chip: 'h200',
                theme: 'auto'};
const LIMITS = {m: [1, SIZE_MAX], n: [1, SIZE_MAX], k: [1, SIZE_MAX], tile: [1, 128]};

function readValue(key, text, fallback) {
    if (typeof fallback === 'string')
        return text.slice(0, 200);
    const [low, high] = LIMITS[key] || [-1e9, 1e9];
    const number = Number(text);
    if (text.trim() === '' || !Number.isFinite(number))
        return fallback;
    return Math.min(Math.max(LIMITS[key] ? Math.round(number) : number, low), high);
}

// `options`: for keys of which few values are allowed, a list of them.
export function makeState(defaults, options) {
    const base = {...SHARED, ...defaults};
    const state = {...base};
    const listeners = [];

    const take = (key, text) => {
        const value = readValue(key, text, base[key]);
        return !options[key] || options[key].includes(value) ? value : base[key];
    };
    function read() {
        const given = new URLSearchParams(location.hash.slice(1));
        for (const key of Object.keys(base))
            state[key] = given.has(key) ? take(key, given.get(key)) : base[key];
    }
    function write() {
        const changed = Object.entries(state).filter(
            ([key, value]) => key in base && value !== base[key]);
        history.replaceState(null, '', '#' + new URLSearchParams(changed));
    }
    const tell = keys => listeners.forEach(listener => listener(state, keys));

    read();
    addEventListener('hashchange', () => {
        read();
        tell(Object.keys(state));
    });
    return {
        state,
        set(changes) {
            const keys = Object.keys(changes).filter(key => key in base);
            const before = {...state};
            for (const key of keys)
                state[key] = take(key, String(changes[key]));
            const changed = keys.filter(key => state[key] !== before[key]);
            if (changed.length === 0)
                return;
            write();
            tell(changed);
        },
        listen: listener => listeners.push(listener),
    };
}
