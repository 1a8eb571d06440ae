// The model is compiled from the library's own C sources: every count and prediction of the page
// comes from here or from the embedded data.
import bytes from 'model.wasm';

const TEXT = new TextEncoder();
const NAME = new TextDecoder();
const TILE_MAX = 128; // the largest side of a tile of the ladder

// Returns the FLOP/s that the model expects for an explanation.
export const predictRate = explained => explained.useful_flops / explained.predicted_s;

// LIMITERS gives the model's limiters in words.
export const LIMITERS = {
    launch: 'the launch', l1: 'reading through L1', shared: 'shared memory',
    fp32: 'FP32 arithmetic', tensor: 'tensor cores',
    chain: 'the chain of steps that wait for each other', dram: 'DRAM'};

// Opens the WebAssembly module. Returns its exports and the functions that ask it.
async function openModule() {
    let told = {};
    let exports = null;
    const read = address => {
        const memory = new Uint8Array(exports.memory.buffer);
        return NAME.decode(memory.subarray(address, memory.indexOf(0, address)));
    };
    const refuse = () => 8; // EBADF: the C library's streams lead nowhere
    const {instance} = await WebAssembly.instantiate(bytes, {
        page: {
            tell_number: (key, value) => { told[read(key)] = value; },
            tell_boolean: (key, value) => { told[read(key)] = value !== 0; },
            tell_text: (key, value) => { told[read(key)] = read(value); },
        },
        wasi_snapshot_preview1: {fd_close: refuse, fd_seek: refuse, fd_write: refuse},
    });
    exports = instance.exports;

    // Returns what the module tells during a call, as an object.
    const ask = call => {
        told = {};
        call();
        return told;
    };
    return {
        exports, ask,
        count: (number, tell) => Array.from({length: number}, (_, i) => ask(() => tell(i))),
        // Sets the text that some calls take a name from.
        put(text) {
            const memory = new Uint8Array(exports.memory.buffer, exports.get_text(),
                                          exports.get_text_bytes());
            const {written} = TEXT.encodeInto(text, memory.subarray(0, memory.length - 1));
            memory[written] = 0;
        },
    };
}

// Makes the functions that explain kernels on a chip.
function makeExplaining({exports, ask, put}, chooseChip) {
    const on = (name, kernel, tell) => {
        const gpu = chooseChip(name);
        if (!gpu)
            return {error: `chip = "${name}" is in no row of the table`};
        put(kernel);
        return {gpu, ...ask(tell)};
    };
    return {
        // Returns what `tilegemm explain MxNxK --kernel K --tile T --gpu CHIP --json` prints, or
        // {error} if that fails. If `tile` is 0 or left out, the kernel has its own tile.
        explain: ({m, n, k, kernel, tile = 0, chip}) =>
            ({m, n, k, ...on(chip, kernel, () => exports.tell_explanation(tile, m, n, k))}),
        // Returns what `tilegemm explain 1,HEADS,HEADS,M,N,SIZE --kernel K --gpu CHIP --json`
        // prints, of BF16 for attention_mma; {error} if that fails.
        explainAttention: ({kernel, heads, m, n, size, chip}) =>
            on(chip, kernel, () => exports.tell_attention(heads, m, n, size)),
    };
}

export async function loadModel() {
    const {exports, ask, count, put} = await openModule();
    const chips = count(exports.get_chip_count(), exports.tell_chip);
    const kernels = count(exports.get_kernel_count(), exports.tell_kernel);

    let current = null;
    let listed = {key: '', list: []}; // keeps the last candidates: several views ask
    function chooseChip(name) {
        const chip = chips.find(row => row.name === name);
        if (!chip)
            return null;
        if (chip !== current) {
            for (const [key, value] of Object.entries(chip)) {
                if (typeof value !== 'number')
                    continue;
                put(key);
                exports.set_chip_number(value);
            }
            put(chip.name);
            exports.set_chip_name();
            current = chip;
        }
        return chip;
    }

    return {
        chips,   // holds the chip table, and chips that the report brings (addChip)
        kernels, // holds the rows of the kernel table
        addChip(chip) {
            const place = chips.findIndex(row => row.name === chip.name);
            chips.splice(place < 0 ? 0 : place, place < 0 ? 0 : 1, chip);
            current = null;
            listed.key = '';
        },
        // Returns the bytes of A, B and D in FP32, counting each matrix once.
        countOperandBytes: ({m, n, k}) => exports.count_operand_bytes(m, n, k),
        ...makeExplaining({exports, ask, put}, chooseChip),
        // Returns {threads_x, threads_y, owners} of a kernel of the ladder. `owners` has, for each
        // row of a block's tile, the numbers of the threads that form its elements. Returns null if
        // there is no such kernel.
        findOwners({kernel, tile = 0}) {
            put(kernel);
            let address = 0;
            const {tile_rows: rows, tile_cols: cols, ...threads} =
                ask(() => { address = exports.find_owners(tile); });
            if (!address)
                return null;
            const all = new Int32Array(exports.memory.buffer, address, rows * cols);
            return {...threads, owners: Array.from({length: rows},
                (_, row) => Array.from(all.subarray(row * cols, (row + 1) * cols)))};
        },
        // Returns the sides of a tile that the source of a row of the ladder can be compiled with.
        listTiles: row => Array.from({length: TILE_MAX}, (_, i) => i + 1)
            .filter(tile => exports.has_tile(kernels.indexOf(row), tile)),
        // Returns {kernel, predicted_s} of the planner's choice, or {} if no kernel can run.
        choose({m, n, k, chip}) {
            return chooseChip(chip) ? ask(() => exports.tell_choice(m, n, k)) : {};
        },
        // Returns the candidates of `tilegemm explain MxNxK --device cuda --gpu CHIP --json`, or []
        // if that fails.
        listCandidates({m, n, k, chip}) {
            const key = `${m} ${n} ${k} ${chip}`;
            if (listed.key !== key)
                listed = {key, list: chooseChip(chip)
                    ? count(exports.list_candidates(m, n, k), exports.tell_candidate) : []};
            return listed.list;
        },
    };
}
