// This view is the guided path: chapters, each of one idea, one picture and one control.
import {html} from '../parts/elements.js';
import {formatCount} from '../parts/format.js';
import attention from './attention.js';
import banks from './banks.js';
import barriers from './barriers.js';
import coalescing from './coalescing.js';
import edges from './edges.js';
import naiveReads from './naive_reads.js';
import occupancy from './occupancy.js';
import ownProduct from './own_product.js';
import pipelines from './pipelines.js';
import registers from './registers.js';
import tensorCores from './tensor_cores.js';
import tiles from './tiles.js';
import walking from './walking.js';

const CHAPTERS = [walking, naiveReads, tiles, coalescing, barriers, edges, banks, registers,
                  occupancy, pipelines, tensorCores, attention, ownProduct];

const clamp = place => Math.min(Math.max(0, Math.round(place)), CHAPTERS.length - 1);

// Shows facts, [[label, value]], as a list.
function makeFacts() {
    const node = html('dl', {class: 'counters facts', 'aria-live': 'polite'});
    const format = value => typeof value === 'number' ? formatCount(value) : value;
    return {node, show: facts => node.replaceChildren(...facts.map(([label, value]) =>
        html('div', {}, [html('dt', {}, label), html('dd', {}, format(value))])))};
}

function makeCloser(app, {view, label, state = {}}) {
    return app.button(`${label} \u2192`, () => app.set({...state, view}), {class: 'closer'});
}

// Returns the panel of a chapter, and draw(), which shows it for the state.
function makeChapter(app, chapter, place) {
    const facts = makeFacts();
    const controls = html('div', {class: 'controls'});
    const picture = html('div', {class: 'chapter-picture'});
    const words = html('div', {class: 'chapter-words'}, [
        html('h2', {}, `${place + 1}. ${chapter.title}`),
        chapter.idea.map(text => html('p', {}, text)), controls, facts.node,
        chapter.closer ? makeCloser(app, chapter.closer) : null]);
    const node = html('section', {class: chapter.isWhole ? 'chapter whole' : 'chapter',
                                  hidden: true, 'aria-label': chapter.title}, [words, picture]);
    let draw = null;
    return {
        node,
        draw() {
            if (!draw)
                app.mount({id: 'guide', mount: () => {
                    draw = chapter.mount(app, {controls, picture, showFacts: facts.show});
                }});
            draw();
        },
    };
}

// Makes the bar that leads from chapter to chapter.
function makePath(app) {
    const go = place => app.set({chapter: clamp(place)});
    const steps = CHAPTERS.map((chapter, i) => html('button', {
        type: 'button', onclick: () => go(i), title: chapter.title,
        'aria-label': `chapter ${i + 1}: ${chapter.title}`}, String(i + 1)));
    const back = app.button('Back', () => go(app.state.chapter - 1));
    const next = app.button('Next', () => go(app.state.chapter + 1), {class: 'next'});
    const count = html('span', {class: 'chapter-count'}); // a phone shows it for the steps
    const {m, n, k} = app.ownProduct;
    const own = app.button(`Your product: ${m} x ${n} x ${k}`, () => app.set(
        {...app.ownProduct, view: 'walk', blockRow: 0, blockCol: 0, at: 0, thread: 0}),
        {class: 'own-product'});
    const node = html('nav', {class: 'path', 'aria-label': 'chapters'}, [
        back, html('ol', {}, steps.map(step => html('li', {}, step))), count, next, own]);
    node.addEventListener('keydown', event => {
        const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        if (!by || event.ctrlKey || event.metaKey || event.altKey)
            return;
        event.preventDefault();
        go(app.state.chapter + by);
        if (steps.includes(document.activeElement))
            steps[clamp(app.state.chapter)].focus();
    });
    const show = place => {
        steps.forEach((step, i) => step.setAttribute('aria-current', i === place ? 'step' : false));
        count.textContent = `${place + 1} of ${CHAPTERS.length}`;
        back.disabled = place === 0;
        next.disabled = place === CHAPTERS.length - 1;
    };
    return {node, show};
}

export default {
    id: 'guide',
    title: 'Guided path',
    heading: 'How a GPU multiplies matrices',
    state: Object.assign({chapter: 0}, ...CHAPTERS.map(chapter => chapter.state)),
    mount(root, app) {
        const {m, n, k} = app.ownProduct;
        const path = makePath(app);
        const chapters = CHAPTERS.map((chapter, i) => makeChapter(app, chapter, i));
        const lead = html('p', {class: 'lead'}, 'See matrix products run on a GPU and why some ' +
            'kernels are a hundred times quicker: first 4 x 4 numbers, step by step, in the end ' +
            'your own ' +
            `${m} x ${n} x ${k}.`);
        root.append(lead, path.node, ...chapters.map(chapter => chapter.node));
        const draw = () => {
            const place = clamp(app.state.chapter);
            path.show(place);
            lead.hidden = place > 0;
            chapters.forEach((chapter, i) => { chapter.node.hidden = i !== place; });
            chapters[place].draw();
        };
        app.on('change', draw);
        draw();
    },
};
