// Measured records of the embedded result files.

const isProduct = (record, {m, n, k}) => record.m === m && record.n === n && record.k === k;

// Every record, with its file's name and processor.
export function listRecords(data) {
    return data.bench.flatMap((file, index) => file.records.map(record => ({
        ...record, file: file.file, index, processor: file.processor, mode: file.mode})));
}

// Records of a product of FP32, A and B row-major, as the ladder takes it.
export function listMeasured(data, shape) {
    return listRecords(data).filter(record => isProduct(record, shape) &&
        record.type === 'fp32' && record.layout === 'nn' && !record.shape.includes(':'));
}

export const isPeer = record => record.kind === 'peer';
export const isOnGpu = record => record.device.startsWith('cuda');

// "cublas" -> "cublas (cuda:0)"; a kernel keeps its name.
export const nameRecord = record =>
    isPeer(record) ? `${record.name}, ${record.processor}` : record.name;
