// This module finds a warp's request in the simulations of the report, for chapters that show one.

// Returns the request of a row of the kernel table that isWanted accepts, with its simulation, or
// null.
export function findRequest(app, family, tile, isWanted) {
    for (const simulation of app.data.simulations) {
        if (simulation.family !== family || simulation.tile_rows !== tile)
            continue;
        const request = (simulation.requests ?? []).find(isWanted);
        if (request)
            return {request, simulation};
    }
    return null;
}
