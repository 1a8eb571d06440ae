// This module knows the units of a chip that form products, and which of them a kernel uses.

const FIRST_WITH_BF16 = 80; // compute capability

// Returns the units that the chip has: {id, title, peak in FLOP/s of FP32 products that count,
// ridge in FLOP a byte, bytes of an element}. Slices make several products for one.
export function listUnits(app, chip) {
    const row = app.model.kernels.find(one => one.slice_products > 1);
    const products = row?.slice_products ?? 1;
    const word = chip.compute_capability >= FIRST_WITH_BF16 ? 'BF16' : 'FP16';
    const fp32 = 2 * chip.sm_count * chip.fp32_lanes_per_sm * chip.clock_hz;
    return [
        {id: 'fma', title: 'FP32 units', peak: fp32, bytes: 4},
        {id: 'sliced', title: `FP32 by ${products} ${word} products`, bytes: 4,
         peak: chip.fp16_flop_per_s / products},
        {id: 'tf32', title: 'TF32 tensor cores', peak: chip.tf32_flop_per_s, bytes: 4},
        {id: 'mma', title: `${word} tensor cores`, peak: chip.fp16_flop_per_s, bytes: 2},
    ].filter(unit => unit.peak > 0).map(unit => (
        {...unit, ridge: unit.peak / chip.memory_bytes_per_s}));
}

// Returns the id of the unit that forms the products of a row of the kernel table.
export const findUnit = row => row?.slice_products > 1 ? 'sliced' :
    ['mma', 'tf32'].includes(row?.math) ? row.math : 'fma';

// Returns the side of the tile from which on a unit is no longer bounded by memory: a T x T tile
// makes T / bytes FLOP for each byte.
export const findCrossover = ({ridge, bytes}) => Math.ceil(ridge * bytes);
