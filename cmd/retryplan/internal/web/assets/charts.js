// Charts: each figure has a picture that package plots drew, with a summary as its text alternative.
import { element } from "./controls.js";

/** Chart shows the charts of a figure. */
export class Chart {
  #picture = element("div", { role: "img" });

  constructor(figure) {
    figure.append(this.#picture);
  }

  show({ svg, summary }) {
    this.#picture.setAttribute("aria-label", summary);
    this.#picture.replaceChildren(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement);
  }
}

/** room returns the width of the figure's charts and the greatest height that lets them stay in view. */
export function room(figure) {
  const narrow = matchMedia("(max-width: 55.99rem)").matches; // as style.css has it
  return { width: figure.clientWidth, most: Math.round(narrow ? innerHeight * 0.22 : 400) };
}
