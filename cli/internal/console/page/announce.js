// What a screen reader is told of changes: a summary now and then, never each of them.

import { many } from "./format.js";

const pause = 6_000;

const words = {
  deployments: ["Deployment"], statefulsets: ["StatefulSet"], daemonsets: ["DaemonSet"], jobs: ["Job"],
  pods: ["Pod"], nodes: ["node"], daemons: ["daemon"], events: ["Event"],
};

// Announcer says in an element what has changed, at most once in a while.
export class Announcer {
  #element;
  #rows = new Map();
  #sentence = "";
  #timer = 0;

  constructor(element) {
    this.#element = element;
  }

  // changed remembers which rows of a topic have changed.
  changed(topic, keys) {
    if (keys.length > 0) {
      this.#rows.set(topic, new Set([...(this.#rows.get(topic) ?? []), ...keys]));
      this.#later();
    }
  }

  // say says a sentence with what has changed.
  say(sentence) {
    this.#sentence = sentence;
    this.#later();
  }

  #later() {
    this.#timer ||= setTimeout(() => this.#speak(), pause);
  }

  #speak() {
    this.#timer = 0;
    const parts = [...this.#rows].map(([topic, keys]) => many(keys.size, ...words[topic]));
    const changes = parts.length > 0 ? `${parts.join(", ")} changed` : "";
    this.#element.textContent = [this.#sentence, changes].filter(Boolean).join(". ");
    this.#rows.clear();
    this.#sentence = "";
  }
}
