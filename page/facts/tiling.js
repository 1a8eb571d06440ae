// Locates the blocks of a product from what the model tells of the kernel (app.explain()).
export function makeTiling(explained) {
    const {m, n, k, tile_rows: rows, tile_cols: cols, tile_depth: depth} = explained;
    const downCount = Math.ceil(m / rows);
    const acrossCount = Math.ceil(n / cols);
    const stepCount = Math.ceil(k / depth);
    return {
        m, n, k, rows, cols, depth, downCount, acrossCount, stepCount,
        blockCount: downCount * acrossCount,
        barriersPerStep: explained.barriers / explained.block_count / stepCount,
        // Returns the tile of D at a row and a column of tiles; numbers past the last one mean the
        // last.
        getBlock(tileRow, tileCol) {
            const row = Math.min(Math.max(0, Math.floor(tileRow)), downCount - 1);
            const col = Math.min(Math.max(0, Math.floor(tileCol)), acrossCount - 1);
            return {row, col, firstRow: row * rows, firstCol: col * cols,
                    rowCount: Math.min(rows, m - row * rows),
                    colCount: Math.min(cols, n - col * cols)};
        },
        // Returns the range of k that a step goes through.
        getStep(step) {
            return {first: step * depth, count: Math.min(depth, k - step * depth)};
        },
    };
}

// Makes fields for the tile of D at hand, whose ends are those of D.
export function makeTileFields(app) {
    const getLast = key => () => {
        const explained = app.explain();
        return explained.error ? 0 : makeTiling(explained)[key] - 1;
    };
    return [
        app.numberField({key: 'blockRow', label: 'tile row of D', low: 0,
                         getHigh: getLast('downCount')}),
        app.numberField({key: 'blockCol', label: 'tile column of D', low: 0,
                         getHigh: getLast('acrossCount')})];
}

// Writes 16, 16 as "16 .. 31", and one number alone as "16".
export const formatRange = (first, count) =>
    count > 1 ? `${first} .. ${first + count - 1}` : String(first);
