// A table of rows that change.
//
// Each element says its role: on a narrow screen the style turns rows into cards, for which browsers would otherwise
// forget that it is a table.

import { element, inOrder, isEmpty, render } from "./cells.js";
import { many } from "./format.js";

const atFirst = 200;

// Table shows rows in a place of the page.
export class Table {
  #columns;
  #words;
  #caption = element("caption");
  #body = element("tbody", { role: "rowgroup" });
  #problems = element("div", { class: "problems" });
  #more = element("button", { type: "button", class: "more" }, "Show more");
  #rows = new Map();
  #most = atFirst;
  #again = () => {};

  // columns have a name and a cell; the first is the heading of its row. words are how one row and several are called.
  constructor(place, { columns, words }) {
    this.#columns = columns;
    this.#words = words;
    const heads = columns.map(({ name }) => element("th", { scope: "col", role: "columnheader" }, name));
    const table = element("table", { role: "table" }, this.#caption,
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...heads)), this.#body);
    this.#more.addEventListener("click", () => {
      const next = this.#most;
      this.#most += atFirst;
      this.#again();
      this.#body.children[next]?.querySelector("a, summary")?.focus();
    });
    this.#more.hidden = true;
    place.replaceChildren(this.#problems, table, this.#more);
  }

  // show shows rows, each a key and its row, in their order. all is how many there were before the filter.
  show({ rows, all, hidden, loading, problems }) {
    this.#again = () => this.show({ rows, all, hidden, loading, problems });
    inOrder(this.#body, rows.slice(0, this.#most).map(({ key, row }) => this.#line(key, row)));
    const keys = new Set(rows.slice(0, this.#most).map(({ key }) => key));
    for (const key of this.#rows.keys()) {
      if (!keys.has(key)) {
        this.#rows.delete(key);
      }
    }
    this.#more.hidden = rows.length <= this.#most;
    render(this.#caption, this.#summary(rows.length, all, hidden, loading));
    inOrder(this.#problems, problems.map((text) => this.#problem(text)));
  }

  #problem(text) {
    const known = [...this.#problems.children].find((child) => child.textContent === text);
    return known ?? element("p", { class: "problem", role: "alert" }, text);
  }

  #summary(shown, all, hidden, loading) {
    if (loading) {
      return "loading";
    }
    const count = shown === all ? many(all, ...this.#words) : `${shown} of ${many(all, ...this.#words)}`;
    return hidden > 0 ? `${count}; ${hidden} more are not shown: choose a namespace` : count;
  }

  // line returns the row's line, up to date.
  #line(key, row) {
    let line = this.#rows.get(key);
    if (!line) {
      line = element("tr", { role: "row" }, ...this.#columns.map(({ name }, i) => (i === 0
        ? element("th", { scope: "row", role: "rowheader" })
        : element("td", { role: "cell", "data-label": name }))));
      this.#rows.set(key, line);
    }
    this.#columns.forEach(({ cell }, i) => {
      const place = line.children[i];
      const value = cell(row);
      render(place, value);
      place.classList.toggle("empty", isEmpty(value));
    });
    return line;
  }
}
