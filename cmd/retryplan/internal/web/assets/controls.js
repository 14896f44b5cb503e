// Controls: for each field a text field and, where it has stops, a slider that writes into it.
import { fields, nearest } from "./fields.js";

const textOf = (value, state) => (typeof value === "function" ? value(state) : value) ?? "";

/** element returns an element with its attributes and children. */
export function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

/** Controls shows a state in fields and calls changed after every change that the user makes to it. */
export class Controls {
  #rows = new Map();
  #state;

  constructor(state, changed) {
    this.#state = state;
    for (const field of fields) {
      const row = this.#row(field, changed);
      this.#rows.set(field.key, row);
      document.getElementById(field.group + "-controls").append(row.node);
    }
    this.show();
  }

  #row(field, changed) {
    const { key } = field;
    const error = element("p", { class: "error", id: "error-" + key, hidden: "" });
    const unit = element("span", { class: "unit", id: "unit-" + key });
    const label = element("label", { for: key }, field.label);
    const input = field.options
      ? element("select", { id: key }, ...Object.entries(field.options).map(([value, text]) => element("option", { value }, text)))
      : element("input", { id: key, type: "text", spellcheck: "false", autocapitalize: "off" });
    input.setAttribute("aria-describedby", `unit-${key} error-${key}`);
    const node = element("div", { class: field.wide ? "row wide" : "row" }, element("div", {}, label, " ", unit), input);
    let slider;
    if (field.stops) {
      slider = element("input", { id: "slider-" + key, type: "range", min: 0, max: field.stops.length - 1, step: 1,
        "aria-label": field.label + ", slider" });
      slider.addEventListener("input", () => {
        this.#state[key] = field.stops[slider.valueAsNumber];
        this.show();
        changed();
      });
      node.append(slider);
    }
    node.append(error);
    input.addEventListener("input", () => {
      this.#state[key] = input.value;
      this.show(input);
      changed();
    });
    return { field, node, input, slider, error, unit };
  }

  /** show writes the state into every field but the one that is being typed into. */
  show(typing) {
    for (const { field, node, input, slider, unit } of this.#rows.values()) {
      const value = this.#state[field.key] ?? "";
      const empty = textOf(field.empty, this.#state);
      node.hidden = field.shown ? !field.shown(this.#state) : false;
      unit.textContent = textOf(field.unit, this.#state);
      if (input !== typing) input.value = value;
      if (!field.options) input.placeholder = empty;
      if (!slider) continue;
      const at = nearest(field.stops, value === "" && !field.stops.includes("") ? empty : value);
      if (at !== undefined) slider.value = at;
      slider.setAttribute("aria-valuetext", value || empty);
    }
  }

  /** fail shows each fault at its field, and returns what is said of those whose field is not here or not shown. */
  fail(faults) {
    const elsewhere = [];
    const texts = new Map();
    for (const { field, text } of faults) {
      const row = this.#rows.get(field);
      if (row && !row.node.hidden) texts.set(field, [...(texts.get(field) ?? []), text]);
      else elsewhere.push(row ? `${row.field.label}: ${text}` : text);
    }
    for (const [key, { input, error }] of this.#rows) {
      const text = (texts.get(key) ?? []).join("; ");
      if (error.textContent !== text) error.textContent = text;
      error.hidden = text === "";
      if (text) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    return elsewhere;
  }
}
