// The player plays, pauses, steps, changes the speed of the walk and scrubs through it.
const SPEED_LEAST = 0.5; // places a second
const SPEED_MOST = 8;

// Returns the seconds that a place lasts.
export const getBeat = ({speed}) =>
    1 / Math.min(Math.max(speed, SPEED_LEAST), SPEED_MOST);

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

// Makes a timer that steps until there is no further place or the player is no longer seen.
function makeClock(app, {step, isSeen, show}) {
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
            timer = setInterval(() => {
                if (!isSeen() || !step(1))
                    clock.stop();
            }, 1000 * getBeat(app.state));
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
export function makePlayer(app, getView, extra = []) {
    const {html} = app;
    const step = by => {
        const view = getView();
        const changes = view.refusal ? null : findStep(view, by);
        if (changes)
            app.set(changes);
        return changes !== null;
    };
    const isAtEnd = () => !getView().refusal && findStep(getView(), 1) === null;
    const clock = makeClock(app, {step, isSeen: () => node.offsetParent !== null,
                                  show: () => show()});
    // At the end of the product, playing starts again.
    const start = () => {
        if (!clock.isRunning() && isAtEnd())
            app.set({blockRow: 0, blockCol: 0, at: 0});
        clock.toggle();
    };
    const play = app.button('Play', start, {class: 'play'});
    const scrub = html('input', {type: 'range', min: 0, step: 1, 'aria-label': 'place in the block',
                                 class: 'scrub',
                                 oninput: () => app.set({at: Number(scrub.value)})});
    const jump = (label, by) => app.button(label, () => {
        clock.stop();
        step(by);
    });
    const node = html('div', {class: 'player', role: 'group', 'aria-label': 'player'}, [
        play, jump('Step back', -1), jump('Step', 1),
        html('div', {class: 'control'}, [html('div', {}, 'place in the block'), scrub]),
        app.slider({key: 'speed', label: 'places a second', low: SPEED_LEAST, high: SPEED_MOST,
                    step: SPEED_LEAST}),
        ...extra,
    ]);
    listenToKeys(node, {' ': start, ArrowRight: () => step(1), ArrowLeft: () => step(-1),
                        Home: () => app.set({at: 0}),
                        End: () => app.set({at: getView().walk?.storePlace ?? 0})});
    let speed = app.state.speed;
    app.on('change', () => {
        if (clock.isRunning() && app.state.speed !== speed)
            clock.start();
        speed = app.state.speed;
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
    return {node, show, play: clock.start, isPlaying: clock.isRunning};
}
