// The simulations that the report holds, by the kernel that the page is at.

const listHeld = app => [...app.data.simulations, ...app.data.traces];
const isOfSizes = ({m, n, k}) => one => one.m === m && one.n === n && one.k === k;

// One with requests: of the sizes at hand if there is one, else of other sizes; null if none.
export function findRequests(app) {
    const {kernel} = app.explain();
    const held = listHeld(app).filter(one => one.kernel === kernel && one.requests?.length);
    return held.find(isOfSizes(app.state)) ?? held[0] ?? null;
}

// One whose first block is not cut by an edge, so that it has an owner for each place of the tile.
export function findOwners(app) {
    const {kernel, tile_rows: rows, tile_cols: cols} = app.explain();
    return listHeld(app).find(one => one.kernel === kernel && one.owners?.length === rows &&
                                     one.owners[0].length === cols) ?? null;
}

// Why nothing is shown of a kernel that the report has no simulation of.
export function explainMissing(app) {
    const {kernel, error, is_legal: isLegal, reason} = app.explain();
    return app.html('p', {class: 'warn'}, error ?? (isLegal
        ? `This report holds no simulation of ${kernel}: choose another tile.`
        : `${kernel} cannot run: ${reason}`));
}
