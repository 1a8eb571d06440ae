// The first chapter: 4 x 4 matrices are multiplied with tiles of 2 x 2.
import {makeStage} from '../walk/walk_stage.js';

const FOUR = {m: 4, n: 4, k: 4, kernel: 'tiled', tile: 2};

export default {
    title: 'A product, tile by tile',
    idea: ['A block of threads forms one tile of D. It copies a tile of A and one of B into ' +
           'shared memory, waits, multiplies, waits, and takes the next pair.'],
    isWhole: true,
    mount(app, frame) {
        const stage = makeStage(app, {getShown: () => ({...app.state, ...FOUR})});
        frame.picture.append(stage.node);
        const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
        if (!isStill && !location.hash)
            requestAnimationFrame(stage.play);
        return stage.draw;
    },
};
