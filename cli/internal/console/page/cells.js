// The contents of cells. A cell is described by a value, and its elements change only when the value does: what has the
// focus or is open stays so. Texts of objects become text nodes and attributes alone.

import { age } from "./format.js";

// Each of these describes a cell.
export const link = (text, href) => ({ kind: "link", text, href });
export const toned = (text, tone) => ({ kind: "toned", text, tone });
export const time = (at) => ({ kind: "time", at });
export const lines = (texts) => ({ kind: "lines", texts });
export const progress = (done, wanted, text, tone) => ({ kind: "progress", done, wanted, text, tone });
export const list = (summary, items) => ({ kind: "list", summary, items });

// element makes an element with attributes and children.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    made.setAttribute(attribute, value);
  }
  made.append(...children);
  return made;
}

const makers = {
  link: ({ text, href }) => [element("a", { href }, text)],
  toned: ({ text, tone }) => [element("span", { class: `tone ${tone}` }, text)],
  time: ({ at }) => (at ? [element("time", { datetime: at, "data-age": "" }, age(at))] : []),
  lines: ({ texts }) => texts.map((text) => element("div", {}, text)),
  progress: ({ done, wanted, text, tone }) => [
    element("div", {},
      element("progress", { max: Math.max(1, wanted), value: wanted === 0 ? 1 : done, "aria-label": "rollout" }),
      ` ${done} of ${wanted}`),
    element("div", { class: `tone ${tone}` }, text),
  ],
};

// isEmpty reports whether a value describes a cell with nothing in it.
export function isEmpty(value) {
  return !value || (value.kind === "lines" && value.texts.length === 0) || (value.kind === "time" && !value.at);
}

const shown = new WeakMap();

// render shows what a value describes; a text describes itself.
export function render(cell, value) {
  const text = JSON.stringify(value ?? "");
  if (shown.get(cell) === text) {
    return;
  }
  shown.set(cell, text);
  if (value?.kind === "list") {
    renderList(cell, value);
    return;
  }
  const maker = makers[value?.kind];
  cell.replaceChildren(...(maker ? maker(value) : [String(value ?? "")]));
}

// renderList shows items that open beneath a summary. Those that stay keep their elements.
function renderList(cell, { summary, items }) {
  let details = cell.querySelector("details");
  if (!details) {
    details = element("details", {}, element("summary"), element("ul"));
    cell.replaceChildren(details);
  }
  render(details.querySelector("summary"), summary);
  const all = details.querySelector("ul");
  const old = new Map([...all.children].map((item) => [item.dataset.key, item]));
  inOrder(all, items.map(({ text, href }) => {
    const item = old.get(href) ?? element("li", { "data-key": href });
    render(item, link(text, href));
    return item;
  }));
}

// inOrder makes elements the children of a parent, in their order, and moves none that is at its place.
export function inOrder(parent, children) {
  const stay = new Set(children);
  for (const child of [...parent.children]) {
    if (!stay.has(child)) {
      child.remove();
    }
  }
  children.forEach((child, i) => {
    if (parent.children[i] !== child) {
      parent.insertBefore(child, parent.children[i] ?? null);
    }
  });
}

// tick brings the ages up to date.
export function tick() {
  for (const each of document.querySelectorAll("time[data-age]")) {
    const text = age(each.dateTime);
    if (each.textContent !== text) {
      each.textContent = text;
    }
  }
}
