// This module makes the elements of the page. Text always goes in as text, so that nothing a file
// brings becomes markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith('on'))
            element.addEventListener(name.slice(2), value);
        else if (value === true)
            element.setAttribute(name, '');
        else if (value !== false && value !== null && value !== undefined)
            element.setAttribute(name, value);
    }
    element.append(...[children].flat(Infinity)
        .filter(child => child !== null && child !== undefined)
        .map(child => typeof child === 'number' ? String(child) : child));
    return element;
}

// html('p', {class: 'hint', onclick: f}, ['text', node]) makes an element. An attribute whose value
// is false or null is left out.
export const html = (tag, attributes = {}, children = []) =>
    fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, children = []) =>
    fill(document.createElementNS(SVG, tag), attributes, children);
