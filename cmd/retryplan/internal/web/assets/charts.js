// Charts: each figure has a picture that the server drew, with a summary as its text alternative, and a table.

/** Chart shows the charts of a figure. */
export class Chart {
  #picture; #body; #head;

  constructor(figure) {
    this.#picture = document.createElement("div");
    this.#picture.setAttribute("role", "img");
    const details = document.createElement("details");
    details.innerHTML = '<summary>As a table</summary><div class="scroll" tabindex="0"><table class="data"><thead></thead><tbody></tbody></table></div>';
    details.querySelector(".scroll").setAttribute("aria-label", figure.querySelector("figcaption").firstChild.textContent.trim());
    details.querySelector(".scroll").setAttribute("role", "region");
    [this.#head, this.#body] = details.querySelectorAll("thead, tbody");
    figure.append(this.#picture, details);
  }

  show({ svg, summary, table }) {
    this.#picture.setAttribute("aria-label", summary);
    this.#picture.replaceChildren(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement);
    this.#head.replaceChildren(line(table.head, "col"));
    this.#body.replaceChildren(...table.rows.map((r) => line(r, "row")));
  }
}

/** room returns the width of the figure's charts and the greatest height that lets them stay in view, as a query. */
export function room(figure) {
  const narrow = matchMedia("(max-width: 55.99rem)").matches; // as style.css has it
  return new URLSearchParams({ width: figure.clientWidth, most: Math.round(narrow ? innerHeight * 0.22 : 400) });
}

function line(cells, scope) {
  const row = document.createElement("tr");
  cells.forEach((text, i) => {
    const cell = document.createElement(scope === "col" || i === 0 ? "th" : "td");
    if (cell.tagName === "TH") cell.scope = scope;
    cell.textContent = text;
    row.append(cell);
  });
  return row;
}
