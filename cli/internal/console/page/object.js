// The view of one object: what its row says, its explanation, its Pods, and its logs.

import { element, inOrder, lines, link, render, time, toned } from "./cells.js";
import { Log } from "./log.js";
import { request } from "./session.js";
import { address, topicOf } from "./views.js";

// asks are how long after a change, and how often without one, the explanation is asked for.
const asks = { afterChange: 1_500, atRest: 15_000 };

const kinds = new Map(Object.entries(topicOf).map(([kind, topic]) => [topic, kind]));

// ObjectView shows one object while its view is open.
export class ObjectView {
  #stream;
  #announcer;
  #show;
  #facts = document.getElementById("facts");
  #explanation = document.getElementById("explanation");
  #runs = document.getElementById("runs");
  #log = new Log();
  #route = null;
  #key = "";
  #timer = 0;
  #asked = null;
  #paused = false;

  constructor({ stream, announcer, show }) {
    this.#stream = stream;
    this.#announcer = announcer;
    this.#show = show;
    document.getElementById("ask").addEventListener("click", () => this.#ask(true));
  }

  // topics are what the view of an object follows.
  topics({ topic }) {
    return topic === "pods" || !kinds.has(topic) ? ["pods"] : [topic, "pods"];
  }

  // open begins to show an object, and returns its heading.
  open(route) {
    this.#route = route;
    this.#key = `${route.namespace}/${route.name}`;
    render(this.#explanation, "asking");
    inOrder(this.#facts, []);
    this.#runs.hidden = route.topic === "pods";
    this.#log.open(route.topic === "pods" ? route : null);
    this.#ask(false);
    return `${kinds.get(route.topic) ?? route.topic} ${route.name}`;
  }

  // leave ends what belongs to the view.
  leave() {
    this.#route = null;
    clearTimeout(this.#timer);
    this.#asked?.abort();
    this.#log.stop();
  }

  // pause stops asking, or begins again.
  pause(now) {
    this.#paused = now;
    if (now) {
      this.#log.stop();
    }
    this.#plan(asks.afterChange);
  }

  // changed asks again soon if the object has changed.
  changed(topic, keys) {
    if (this.#route && topic === this.#route.topic && keys.includes(this.#key)) {
      this.#plan(asks.afterChange);
    }
  }

  // draw brings facts and Pods up to date.
  draw(route) {
    const source = this.#stream.topic(route.topic);
    const row = source.rows.get(this.#key);
    const facts = row ? factsOf(row) : [["State", source.problem || (source.loading ? "loading" : "it is not there")]];
    const old = new Map([...this.#facts.children].map((child) => [child.dataset.key, child]));
    inOrder(this.#facts, facts.map(([name, value]) => {
      const fact = old.get(name) ?? element("div", { "data-key": name }, element("dt", {}, name), element("dd"));
      render(fact.lastChild, value);
      return fact;
    }));
    if (route.topic === "pods") {
      this.#log.offer(row?.logs ?? []);
      return;
    }
    const kind = kinds.get(route.topic);
    const own = ({ row: pod }) => (kind === "Node" ? pod.node === route.name
      : pod.owner?.kind === kind && pod.owner?.name === route.name);
    this.#show(this.#runs.querySelector("[data-table]"), "owned", own);
  }

  #plan(after) {
    clearTimeout(this.#timer);
    if (this.#route && !this.#paused) {
      this.#timer = setTimeout(() => this.#ask(false), after);
    }
  }

  // ask asks for the explanation. One that differs is announced, as is any that was asked for by hand.
  async #ask(byHand) {
    const { topic, namespace, name } = this.#route;
    clearTimeout(this.#timer);
    this.#asked?.abort();
    const asked = new AbortController();
    this.#asked = asked;
    let text = "";
    try {
      text = (await (await request("/api/explain", { topic, namespace, name }, asked.signal)).json()).text;
    } catch (error) {
      if (asked.signal.aborted) {
        return;
      }
      text = error.message;
    }
    if (asked.signal.aborted) {
      return;
    }
    if (byHand || text !== this.#explanation.textContent) {
      this.#announcer.say("The explanation is up to date");
    }
    render(this.#explanation, text);
    this.#plan(asks.atRest);
  }
}

// factsOf returns what a row says, as names and the descriptions of cells.
function factsOf(row) {
  const owner = row.owner && address(row.owner.kind, row.namespace, row.owner.name);
  return [
    ["State", toned(row.state, row.tone)],
    ["Waits", row.waits],
    ["Namespace", row.namespace],
    ["Node", row.node && link(row.node, address("Node", "", row.node))],
    ["Belongs to", row.owner && (owner ? link(`${row.owner.kind} ${row.owner.name}`, owner)
      : `${row.owner.kind} ${row.owner.name}`)],
    ["Rollout", row.wanted !== undefined && `${row.done} of ${row.wanted}`],
    ["Ready", row.containers !== undefined && `${row.ready} of ${row.containers}`],
    ["Restarts", row.restarts !== undefined && String(row.restarts)],
    ["Images", row.images && lines(row.images)],
    ["Problems", row.problems && lines(row.problems)],
    ["Taints", row.taints && lines(row.taints)],
    ["Address", row.address],
    ["Version", row.version],
    ["Age", row.created && time(row.created)],
  ].filter(([, value]) => value);
}
