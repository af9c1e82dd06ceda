// The log of a container.

import { events, request } from "./session.js";

// most is how many lines are kept, the newest.
const most = 1000;

// Log shows the log of one container at a time.
export class Log {
  #place = document.getElementById("logs");
  #form = document.getElementById("log-choice");
  #container = document.getElementById("container");
  #previous = document.getElementById("previous");
  #end = document.getElementById("log-stop");
  #state = document.getElementById("log-state");
  #lines = document.getElementById("log");
  #pod = null;
  #abort = null;

  constructor() {
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#follow();
    });
    this.#end.addEventListener("click", () => {
      this.stop();
      this.#form.querySelector("[type=submit]").focus(); // the button that had it is disabled now
    });
  }

  // open is for the containers of a Pod, or for none.
  open(pod) {
    this.#pod = pod;
    this.#place.hidden = pod === null;
    this.#container.replaceChildren();
    this.#lines.replaceChildren();
    this.#state.textContent = "";
  }

  // offer offers containers to choose from.
  offer(names) {
    const there = [...this.#container.options].map(({ value }) => value);
    for (const name of names) {
      if (!there.includes(name)) {
        this.#container.add(new Option(name, name));
      }
    }
  }

  // stop ends the log; its lines stay.
  stop() {
    this.#abort?.abort();
    this.#abort = null;
    this.#end.disabled = true;
  }

  async #follow() {
    this.stop();
    const abort = new AbortController();
    this.#abort = abort;
    this.#lines.replaceChildren();
    this.#end.disabled = false;
    const say = (text) => {
      if (this.#abort === abort) {
        this.#state.textContent = text;
      }
    };
    say("asking");
    try {
      const response = await request("/api/logs", {
        namespace: this.#pod.namespace, pod: this.#pod.name, container: this.#container.value,
        previous: this.#previous.checked,
      }, abort.signal);
      say("The log is followed.");
      await events(response, (name, data) => {
        if (this.#abort !== abort) {
          return;
        }
        if (name === "lines") {
          this.#add(data);
        } else {
          say(data === "" ? "The log has ended." : `The log broke off: ${data}`);
        }
      });
    } catch (error) {
      if (!abort.signal.aborted) {
        say(error.message);
      }
    }
    if (this.#abort === abort) {
      this.#end.disabled = true;
    }
  }

  // add adds lines, and stays at the end if that is what is seen.
  #add(texts) {
    const { scrollTop, scrollHeight, clientHeight } = this.#lines;
    const atEnd = scrollHeight - scrollTop - clientHeight < 40;
    this.#lines.append(...texts.map((text) => `${text}\n`));
    while (this.#lines.childNodes.length > most) {
      this.#lines.firstChild.remove();
    }
    if (atEnd) {
      this.#lines.scrollTop = this.#lines.scrollHeight;
    }
  }
}
