// The page: which view is shown, what it follows, and what the controls do.

import { Announcer } from "./announce.js";
import { tick } from "./cells.js";
import { ObjectView } from "./object.js";
import { request, takeToken } from "./session.js";
import { Stream } from "./stream.js";
import { Table } from "./table.js";
import { nodePods, tables, topics } from "./views.js";

const byID = (id) => document.getElementById(id);
const connection = byID("connection");
const trouble = byID("trouble");
const pause = byID("pause");
const filters = { namespace: byID("namespace"), text: byID("filter"), troubled: byID("troubled") };
const states = {
  connecting: "connecting", live: "live", lost: "connection lost, tries again", refused: "not connected", paused: "paused",
};

const announcer = new Announcer(byID("changes"));
const shownTables = new Map();
const namespaces = new Set();
let route = { view: "workloads" };
let paused = false;
let drawing = 0;

const stream = new Stream({
  changed(topic, keys) {
    announcer.changed(topic, keys);
    object.changed(topic, keys);
    draw();
  },
  connected(state, message) {
    connection.textContent = states[state];
    connection.className = state;
    trouble.textContent = message;
    trouble.hidden = message === "";
  },
});
const object = new ObjectView({ stream, announcer, show });

// draw brings the page up to date, once for all changes until the browser paints.
function draw() {
  drawing ||= requestAnimationFrame(() => {
    drawing = 0;
    if (route.view === "object") {
      object.draw(route);
    } else {
      for (const place of document.querySelectorAll(`#view-${route.view} [data-table]`)) {
        show(place, place.dataset.table, matches);
      }
    }
    offerNamespaces();
  });
}

// show shows the rows of a table that are wanted.
function show(place, name, wanted) {
  const definition = tables[name];
  const table = shownTables.get(place) ?? new Table(place, definition);
  shownTables.set(place, table);
  const sources = definition.from.map((topic) => stream.topic(topic));
  const all = sources.flatMap(({ rows }, i) => [...rows].map(([key, row]) => ({ key: `${definition.from[i]}/${key}`, row })))
    .filter(definition.only ?? (() => true));
  const rows = (name === "nodes" ? withPods(all) : all).filter((each) => wanted(each, definition))
    .sort(definition.compare ?? byName);
  table.show({
    rows, all: name === "owned" ? rows.length : all.length,
    hidden: sources.reduce((sum, { hidden }) => sum + hidden, 0),
    loading: sources.some(({ loading, problem }) => loading && !problem),
    problems: sources.map(({ problem }) => problem).filter(Boolean),
  });
}

// byName compares rows of several topics by namespace and name.
function byName(a, b) {
  const name = ({ key }) => key.slice(key.indexOf("/"));
  return name(a).localeCompare(name(b)) || a.key.localeCompare(b.key);
}

// withPods gives each node the Pods that it runs.
function withPods(nodes) {
  const pods = [...stream.topic("pods").rows].map(([key, row]) => ({ key, row }));
  return nodes.map(({ key, row }) => ({ key, row: { ...row, running: nodePods(pods, row.name) } }));
}

// matches reports whether the filters let a row through.
function matches({ row }, definition) {
  const tone = (definition.tone ?? ((of) => of.tone))(row);
  if (filters.troubled.checked && tone !== "bad" && tone !== "busy") {
    return false;
  }
  const text = filters.text.value.trim().toLowerCase();
  return text === "" || JSON.stringify(row).toLowerCase().includes(text);
}

// offerNamespaces adds the namespaces that have been seen to the choice.
function offerNamespaces() {
  for (const topic of topics[route.view] ?? []) {
    for (const row of stream.topic(topic).rows.values()) {
      if (row.namespace && !namespaces.has(row.namespace)) {
        namespaces.add(row.namespace);
        const after = [...filters.namespace.options].find(({ value }) => value > row.namespace);
        filters.namespace.add(new Option(row.namespace, row.namespace), after ?? null);
      }
    }
  }
}

// decoded decodes a part of the address; one that cannot be decoded names nothing.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

// read returns the route of the address.
function read() {
  const [view, topic, namespace, ...name] = location.hash.slice(2).split("/").map(decoded);
  if (view === "object" && name.length > 0) {
    return { view, topic, namespace: namespace === "-" ? "" : namespace, name: name.join("/") };
  }
  return { view: Object.hasOwn(topics, view) ? view : "workloads" };
}

// go shows the view of the address, and moves the focus there unless the page has just been loaded. A pause is for the
// view that it was made in.
function go(loaded) {
  setPaused(false);
  route = read();
  object.leave();
  for (const section of document.querySelectorAll("main > section")) {
    section.hidden = section.id !== `view-${route.view}`;
  }
  for (const each of document.querySelectorAll("nav a")) {
    if (each.dataset.view === route.view) {
      each.setAttribute("aria-current", "page");
    } else {
      each.removeAttribute("aria-current");
    }
  }
  byID("filters").hidden = route.view === "object";
  const heading = byID(`heading-${route.view}`);
  if (route.view === "object") {
    heading.textContent = object.open(route);
  }
  document.title = `${heading.textContent} – Keelson console`;
  follow();
  draw();
  if (!loaded) {
    scrollTo(0, 0);
    heading.focus({ preventScroll: true });
  }
}

// follow follows what the view needs.
function follow() {
  const wanted = route.view === "object" ? object.topics(route) : topics[route.view];
  const all = route.view === "object" ? route.namespace : filters.namespace.value;
  stream.follow(wanted, all);
}

// rest stops to follow anything, or begins again.
function rest(now) {
  object.pause(now);
  if (now) {
    stream.stop();
  } else {
    stream.resume();
  }
}

function setPaused(now) {
  if (now === paused) {
    return;
  }
  paused = now;
  pause.setAttribute("aria-pressed", String(now));
  rest(now);
  connection.textContent = now ? states.paused : states.connecting;
  connection.className = now ? "paused" : "";
}

// A page that is not seen for a while follows nothing.
let unseen = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(unseen);
  if (document.hidden) {
    unseen = setTimeout(() => rest(true), 10_000);
  } else {
    rest(paused);
  }
});

byID("skip").addEventListener("click", (event) => { // its address would be another view's
  event.preventDefault();
  byID("content").focus();
});
byID("filters").addEventListener("submit", (event) => event.preventDefault());
filters.text.addEventListener("input", draw);
filters.troubled.addEventListener("change", draw);
filters.namespace.addEventListener("change", () => {
  setPaused(false);
  follow();
  draw();
});
pause.addEventListener("click", () => setPaused(!paused));
addEventListener("hashchange", () => (/^#token=/.test(location.hash) ? start() : go(false)));
setInterval(tick, 5_000);

// start begins with the token of the address.
async function start() {
  takeToken();
  stream.stop();
  go(true);
  try {
    const about = await (await request("/api/about", {})).json();
    byID("version").textContent = about.version;
    if (about.namespace) {
      filters.namespace.replaceChildren(new Option(about.namespace, ""));
      filters.namespace.disabled = true;
    }
  } catch {
    // The stream says what is wrong.
  }
}

start();
