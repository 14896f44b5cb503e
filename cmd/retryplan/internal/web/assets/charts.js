// Charts: each figure has a picture that the server drew, with a summary as its text alternative, and a table.
import { element } from "./controls.js";

/** Chart shows the charts of a figure. */
export class Chart {
  #picture = element("div", { role: "img" });
  #table = element("table", { class: "data" });

  constructor(figure) {
    const label = figure.querySelector("figcaption").firstChild.textContent.trim();
    figure.append(this.#picture, element("details", {}, element("summary", {}, "As a table"),
      element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, this.#table)));
  }

  show({ svg, summary, table }) {
    this.#picture.setAttribute("aria-label", summary);
    this.#picture.replaceChildren(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement);
    const cell = (text, i) => (i === 0 ? element("th", { scope: "row" }, text) : element("td", {}, text));
    this.#table.replaceChildren(
      element("thead", {}, element("tr", {}, ...table.head.map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, ...table.rows.map((row) => element("tr", {}, ...row.map(cell)))));
  }
}

/** room returns the width of the figure's charts and the greatest height that lets them stay in view, as a query. */
export function room(figure) {
  const narrow = matchMedia("(max-width: 55.99rem)").matches; // as style.css has it
  return new URLSearchParams({ width: figure.clientWidth, most: Math.round(narrow ? innerHeight * 0.22 : 400) });
}
