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

// How to get what the report does not hold.
export function explainMissing(app, kernel) {
    const {html} = app;
    const {m, n, k, tile} = app.state;
    return html('p', {}, ['This report holds no simulation of ', html('b', {}, kernel),
        ' that tells it. Choose another tile, or run ', html('code', {},
            `tilegemm simulate ${m}x${n}x${k} --kernel ${app.state.kernel} --tile ${tile} ` +
            '--requests'), '.']);
}
