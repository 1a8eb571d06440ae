// This module makes the tabs: one for each view, the panels that they show, and a hint where a
// narrow screen has more of them.
import {html} from './parts/elements.js';
import {views} from './views.js';

const ARROW = 36; // pixels of the arrow over the bar's end

// Tells by data-more where the bar has more tabs than it shows.
function tellMore(bar) {
    const tell = () => {
        const rest = bar.scrollWidth - bar.clientWidth - bar.scrollLeft;
        bar.parentElement.dataset.more = [bar.scrollLeft > 4 && 'left', rest > 4 && 'right']
            .filter(Boolean).join(' ');
    };
    bar.addEventListener('scroll', tell);
    addEventListener('resize', tell);
    requestAnimationFrame(tell);
}

export function makeTabs(app) {
    const panels = views.map(view => html('section', {
        role: 'tabpanel', id: `panel-${view.id}`, 'aria-labelledby': `tab-${view.id}`,
        tabindex: 0, hidden: true}));
    const tabs = views.map(view => html('button', {
        type: 'button', role: 'tab', id: `tab-${view.id}`, 'aria-controls': `panel-${view.id}`,
        onclick: () => app.set({view: view.id}),
    }, view.title));
    const bar = html('div', {role: 'tablist', 'aria-label': 'views', class: 'tabs'}, tabs);
    bar.addEventListener('keydown', event => {
        const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        const place = views.findIndex(view => view.id === app.state.view);
        const target = event.key === 'Home' ? 0 : event.key === 'End' ? views.length - 1 :
            step && (place + step + views.length) % views.length;
        if (target === undefined)
            return;
        event.preventDefault();
        app.set({view: views[target].id});
        tabs[target].focus();
    });
    const show = () => {
        views.forEach((view, i) => {
            const isShown = view.id === app.state.view;
            tabs[i].setAttribute('aria-selected', isShown);
            tabs[i].tabIndex = isShown ? 0 : -1;
            if (isShown && panels[i].hidden) // on a phone the bar is wider than the screen
                requestAnimationFrame(() => {
                    bar.scrollLeft = tabs[i].offsetLeft - bar.offsetLeft - ARROW;
                });
            panels[i].hidden = !isShown;
            if (isShown && !panels[i].dataset.isMounted) {
                panels[i].dataset.isMounted = true;
                app.mount(view, panels[i]);
            }
        });
    };
    app.on('change', show);
    tellMore(bar);
    return {bar: html('nav', {'aria-label': 'views'}, bar), panels, show};
}

