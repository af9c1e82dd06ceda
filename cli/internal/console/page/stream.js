// What the page follows: rows by topic, kept as the console sends them.

import { Refused, events, request } from "./session.js";

// The console sends a sign of life every 15 s. A stream that is silent for longer is dead.
const silence = 40_000;
const longestPause = 15_000;

// Rows are the rows of one topic by their keys, in any order.
class Rows {
  rows = new Map();
  loading = true;
  hidden = 0;
  problem = "";

  // apply takes a change over and returns the keys of the rows that it changes, none for a first answer.
  apply(change) {
    const first = this.loading || change.whole;
    if (change.whole) {
      this.rows.clear();
    }
    for (const { key, row } of change.set ?? []) {
      this.rows.set(key, row);
    }
    for (const key of change.gone ?? []) {
      this.rows.delete(key);
    }
    this.loading = change.loading ?? false;
    this.hidden = change.hidden ?? 0;
    this.problem = change.problem ?? "";
    return first ? [] : [...(change.set ?? []).map(({ key }) => key), ...(change.gone ?? [])];
  }
}

// Stream follows topics, and connects again when the connection is lost.
export class Stream {
  #topics = new Map();
  #wanted = "";
  #namespace = "";
  #abort = null;

  // changed is called with a topic and the keys of the rows that have changed, connected with the state of the
  // connection and what the console said.
  constructor({ changed, connected }) {
    this.changed = changed;
    this.connected = connected;
  }

  // topic returns what is known of a topic that is followed.
  topic(name) {
    return this.#topics.get(name) ?? new Rows();
  }

  // follow follows these topics of a namespace and no others.
  follow(topics, namespace) {
    const wanted = topics.join(",");
    if (this.#abort && wanted === this.#wanted && namespace === this.#namespace) {
      return;
    }
    this.stop();
    this.#topics = new Map(topics.map((name) => [name, new Rows()]));
    this.#wanted = wanted;
    this.#namespace = namespace;
    this.resume();
  }

  // resume follows again what was followed before stop.
  resume() {
    if (!this.#abort && this.#wanted) {
      this.#abort = new AbortController();
      this.#run(this.#abort.signal);
    }
  }

  // stop ends the connection. The rows stay.
  stop() {
    this.#abort?.abort();
    this.#abort = null;
  }

  async #run(signal) {
    for (let tries = 0; !signal.aborted; tries++) {
      const pause = Math.min(longestPause, 500 * 2 ** tries);
      try {
        await this.#once(signal, () => { tries = 0; });
        if (!signal.aborted) {
          this.connected("lost", "");
        }
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        if (error instanceof Refused && error.status === 401) {
          this.connected("refused", error.message);
          return; // another try would bring the same
        }
        this.connected("lost", error instanceof Refused ? error.message : "");
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  // once follows until the connection ends.
  async #once(signal, succeeded) {
    const dead = new AbortController();
    let timer = 0;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => dead.abort(), silence);
    };
    alive();
    try {
      const response = await request("/api/stream", { topics: this.#wanted, namespace: this.#namespace },
        AbortSignal.any([signal, dead.signal]));
      const watched = new Response(response.body.pipeThrough(new TransformStream({
        transform(part, controller) {
          alive();
          controller.enqueue(part);
        },
      })));
      this.connected("live", "");
      succeeded();
      await events(watched, (_, change) => {
        const rows = this.#topics.get(change.topic);
        if (rows && !signal.aborted) {
          this.changed(change.topic, rows.apply(change));
        }
      });
    } finally {
      clearTimeout(timer);
    }
  }
}
