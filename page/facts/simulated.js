// This module finds the simulations that the report holds for the kernel of the state.

const REPORT_TILE_MAX = 32; // the largest tile of tilegemm report --tile

const listHeld = app => [...app.data.simulations, ...app.data.traces];
const isOfSizes = ({m, n, k}) => one => one.m === m && one.n === n && one.k === k;

// Returns a simulation with requests, at the sizes of the state if there is one, otherwise at other
// sizes. Returns null if there is none.
export function findRequests(app) {
    const {kernel} = app.explain();
    const held = listHeld(app).filter(one => one.kernel === kernel && one.requests?.length);
    return held.find(isOfSizes(app.state)) ?? held[0] ?? null;
}

// Returns the tiles of the kernel's family whose requests the report holds.
const listHeldTiles = (app, family) => [...new Set(listHeld(app)
    .filter(one => one.family === family && one.requests?.length).map(one => one.tile_rows))]
    .sort((a, b) => a - b);

// Says why nothing is shown of a kernel that the report has no simulation of.
export function explainMissing(app) {
    const {m, n, k, tile} = app.state;
    const {kernel, family, error, is_legal: isLegal, reason} = app.explain();
    return app.html('p', {class: 'warn'}, error ?? (isLegal
        ? `This report holds no simulation of ${kernel}: choose tile ` +
          listHeldTiles(app, family).join(', ') + (tile <= REPORT_TILE_MAX ? ', or make a report ' +
          `that holds it: tilegemm report ${m}x${n}x${k} --tile ${tile}.` : '.')
        : `${kernel} cannot run: ${reason}`));
}
