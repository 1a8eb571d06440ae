// This module holds the measured records of the embedded result files and the one rule by which
// views take them: a record counts if it was measured on the chip of the state with the caches of
// the state. If several files measured a kernel, the first file counts. The origin of a figure is
// told beside it.

// Returns true for a word that a GPU's name may have beside those that tell the chip: a maker, a
// board, a memory.
const isOfBoard = word => /^(nvidia|tesla|geforce|sxm\d*|hbm\d*e?)$/.test(word);
const isOfMemory = word => /^\d+gb$/.test(word);
const listWords = name => name.toLowerCase().split(/[^a-z0-9]+/).filter(Boolean);

function isSameName(title, processor) {
    const [left, right] = [title, processor].map(listWords);
    const [own, other] = [left, right].map(words => words.filter(
        word => !isOfBoard(word) && !isOfMemory(word)).join(' '));
    const [size, otherSize] = [left, right].map(words => words.find(isOfMemory));
    return own === other && (!size || !otherSize || size === otherSize);
}

// Returns the chip of a processor's name: "NVIDIA A100-SXM4-80GB" is the A100 SXM 80GB. Returns
// null if no row matches, for example for "NVIDIA A100-PCIE-40GB".
export const findChip = (chips, processor) =>
    (chips.find(chip => chip.title === processor) ??
     chips.find(chip => isSameName(chip.title, processor)))?.name ?? null;

// Returns true for every record of the CPU, the host beside a GPU included: the textbook loop of
// the ladder runs there.
const isOnCpu = record => record.device === 'cpu' || record.name.startsWith('cpu_');

// Shortens each file's name by its folders, unless another file has the same name.
function nameFiles(files) {
    const last = path => path.split('/').pop();
    return files.map(({file}) =>
        files.filter(other => last(other.file) === last(file)).length === 1 ? last(file) : file);
}

// Returns every record with its file's name, date, mode and processor, and the chip that it was
// measured on (null if the page does not have it). `suffix` is what the shape's text has beyond its
// sizes, for example "nt:bf16".
export function readRecords(data, chips) {
    const names = nameFiles(data.bench);
    return data.bench.flatMap((file, index) => {
        const chip = findChip(chips, file.processor);
        return file.records.map(record => ({
            ...record, index, file: names[index], mode: file.mode, processor: file.processor,
            isOnCpu: isOnCpu(record), chip: isOnCpu(record) ? null : chip,
            suffix: record.shape.split(':').slice(1).join(':')}));
    });
}

// A wrong result has no error to show.
export const formatError = ({max_error: error}) =>
    error === null ? 'not a number' : error.toExponential(1);

export const isPeer = record => record.kind === 'peer';

// Returns true for D = A B as the ladder takes it: FP32, A and B row-major, nothing added. A bound
// on the error that FP32 operations keep changes nothing about a kernel.
export const isPlain = record => ['', 'prec=ieee_fp32'].includes(record.suffix) &&
    record.type === 'fp32' && record.layout === 'nn';
export const isOfSize = ({m, n, k}) => record => record.m === m && record.n === n &&
    record.k === k;

// Returns true for a record with bias, activation, alpha, beta or scales.
export const isFused = record => /(^|:)(bias|act|alpha|beta|sa|sb|sd)=/.test(record.suffix);

export const isHere = app => record =>
    record.chip === app.state.chip && record.mode === app.state.mode;

function takeFirst(records) {
    const first = new Map();
    for (const record of records) {
        const {m, n, k, shape, name} = record;
        const key = `${isPlain(record) ? [m, n, k] : shape} ${name}`;
        if (!first.has(key))
            first.set(key, record);
    }
    return [...first.values()];
}

// Returns the wanted records that the rule of this module takes.
export const listMeasured = (app, isWanted) =>
    takeFirst(app.records.filter(record => isHere(app)(record) && isWanted(record)));

// Returns the records of the processor that a plan was made for, with the plan's threads.
export const listMeasuredOnCpu = (app, {device, ...shape}) => takeFirst(app.records.filter(
    record => record.device === 'cpu' && record.processor === device.name &&
        record.threads === device.thread_count && record.mode === app.state.mode &&
        isPlain(record) && isOfSize(shape)(record)));

// Names the file and the caches of a figure: "ladder.json, cold".
export const nameOrigin = record => `${record.file}, ${record.mode || 'caches not told'}`;

// Names a library as "cublas, library"; a kernel keeps its name.
export const nameRecord = record => isPeer(record) ? `${record.name}, library` : record.name;

const countRecords = list => `${list.length} ${list.length === 1 ? 'result' : 'results'}`;

// Says which records are shown as measured and what else the files hold. Returns '' without files.
export function explainMeasured(app) {
    const {chip, mode} = app.state;
    if (!app.records.length)
        return '';
    const here = app.records.filter(isHere(app));
    const files = [...new Set(here.map(record => record.file))];
    const others = new Map();
    for (const record of app.records.filter(one => !isHere(app)(one) && !one.isOnCpu)) {
        const name = record.chip === chip ? `with ${record.mode || 'untold'} caches`
                                          : `on ${record.processor || 'an untold GPU'}`;
        others.set(name, (others.get(name) ?? 0) + 1);
    }
    const rest = [...others].map(([name, count]) => `${count} ${name}`).join(', ');
    return `Measured figures are those on ${app.findChip(chip).title} with ${mode} caches: ` +
        `${countRecords(here)}${files.length ? ` of ${files.join(', ')}` : ''}.` +
        (rest ? ` Not shown here: ${rest}; choose that chip or those caches above.` : '');
}
