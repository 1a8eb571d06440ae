// The player plays, pauses, steps, changes the speed of the walk and scrubs through it.
import {makeTileFields} from '../facts/tiling.js';

const SPEED_LEAST = 0.5; // places a second
const SPEED_MOST = 8;

// Returns where a step from the place at hand leads, as changes of the state: within the block, or
// past its ends into the neighbouring one. Returns null at the ends of the product.
function findStep({tiling, block, walk, place}, by) {
    const at = place.place + by;
    if (at >= 0 && at <= walk.storePlace)
        return {at};
    const index = block.row * tiling.acrossCount + block.col + by;
    if (index < 0 || index >= tiling.blockCount)
        return null;
    return {blockRow: Math.floor(index / tiling.acrossCount), blockCol: index % tiling.acrossCount,
            at: by > 0 ? 0 : walk.storePlace};
}

// Makes a timer that steps until there is no further place or the view is left.
function makeClock(app, step, show) {
    let timer = null;
    const clock = {
        isRunning: () => timer !== null,
        stop() {
            clearInterval(timer);
            timer = null;
            show();
        },
        start() {
            clearInterval(timer);
            const speed = Math.min(Math.max(app.state.speed, SPEED_LEAST), SPEED_MOST);
            timer = setInterval(() => {
                if (app.state.view !== 'walk' || !step(1))
                    clock.stop();
            }, 1000 / speed);
            show();
        },
        toggle: () => timer === null ? clock.start() : clock.stop(),
    };
    return clock;
}

// Listens to keys, wherever the focus is in the bar: space plays and pauses, the arrows step, Home
// and End go to the block's ends.
function listenToKeys(node, keys) {
    node.addEventListener('keydown', event => {
        // A field and a slider have a use for these keys, a button for space.
        const isControl = event.target.tagName === 'INPUT';
        const isPress = event.key === ' ' && event.target.tagName === 'BUTTON';
        if (!keys[event.key] || isControl || isPress || event.ctrlKey || event.metaKey ||
            event.altKey)
            return;
        event.preventDefault();
        keys[event.key]();
    });
}

// Makes the player. getView() is the walk at hand; nothing moves while it has a refusal.
export function makePlayer(app, getView) {
    const {html} = app;
    const step = by => {
        const view = getView();
        const changes = view.refusal ? null : findStep(view, by);
        if (changes)
            app.set(changes);
        return changes !== null;
    };
    const clock = makeClock(app, step, () => show());
    const play = app.button('Play', clock.toggle, {class: 'play'});
    const scrub = html('input', {type: 'range', min: 0, step: 1, id: 'walk-scrub',
                                 oninput: () => app.set({at: Number(scrub.value)})});
    const jump = (label, by) => app.button(label, () => {
        clock.stop();
        step(by);
    });
    const node = html('div', {class: 'controls player', role: 'group', 'aria-label': 'player'}, [
        play, jump('Step back', -1), jump('Step', 1),
        html('div', {class: 'control'}, [html('label', {for: scrub.id}, 'place in the block'),
                                         scrub]),
        app.slider({key: 'speed', label: 'places a second', low: SPEED_LEAST, high: SPEED_MOST,
                    step: SPEED_LEAST}),
        ...makeTileFields(app),
    ]);
    listenToKeys(node, {' ': clock.toggle, ArrowRight: () => step(1), ArrowLeft: () => step(-1),
                        Home: () => app.set({at: 0}),
                        End: () => app.set({at: getView().walk?.storePlace ?? 0})});
    app.on('change', () => {
        if (clock.isRunning())
            clock.start();
    });

    function show() {
        const view = getView();
        play.textContent = clock.isRunning() ? 'Pause' : 'Play';
        scrub.disabled = Boolean(view.refusal);
        if (view.refusal)
            return;
        scrub.max = view.walk.storePlace;
        scrub.value = view.place.place;
        scrub.setAttribute('aria-valuetext', `step ${view.place.step + 1}, ${view.place.phase}`);
    }
    return {node, show, isPlaying: clock.isRunning};
}
