// The page: a state, fields that change it, and the server's answer to it.
import { Chart, room } from "./charts.js";
import { Controls, element } from "./controls.js";
import { fields } from "./fields.js";

const $ = (id) => document.getElementById(id);
const debounce = 90; // ms: a slider that is being moved asks about ten times a second

const presets = await (await fetch("presets.json")).json();
const defaults = presets[0].state;
const state = {};
setState(location.hash);

const controls = new Controls(state, changed);
const charts = Object.fromEntries(["schedule", "total", "load", "queue"].map((id) => [id, new Chart($(id))]));

/** setState sets the state to that of an address's fragment, on top of the defaults. */
function setState(fragment) {
  const link = new URLSearchParams(fragment.slice(1));
  for (const { key } of fields) state[key] = link.get(key) ?? defaults[key];
}

/** link writes into the address what differs from the defaults, which are those of every retryplan serve. */
function link() {
  const set = fields.filter(({ key }) => state[key] !== defaults[key]);
  const fragment = new URLSearchParams(set.map(({ key }) => [key, state[key]])).toString();
  if (fragment !== location.hash.slice(1)) history.replaceState(null, "", fragment ? "#" + fragment : location.pathname);
}

let timer, asked;

function changed() {
  link();
  clearTimeout(timer);
  timer = setTimeout(evaluate, debounce);
}

/** evaluate asks about the state and shows the answer. A question that is overtaken is aborted, and its answer not shown. */
async function evaluate() {
  asked?.abort();
  const mine = (asked = new AbortController());
  document.body.setAttribute("aria-busy", "true");
  let answer, faults;
  try {
    const response = await fetch("api/evaluate?" + room($("schedule")), {
      method: "POST", signal: mine.signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(state),
    });
    const body = await response.json();
    if (response.ok) answer = body;
    else faults = body.errors;
  } catch {
    faults = [{ text: "retryplan does not answer. Is it still running?" }];
  }
  if (mine.signal.aborted) return;
  document.body.removeAttribute("aria-busy");
  tell(faults ?? []);
  if (answer) show(answer);
}

/** tell shows faults at their fields, and above all what no field shows; the last good picture stays, greyed. */
function tell(faults) {
  const texts = controls.fail(faults);
  if (faults.length > texts.length) texts.unshift("Not redrawn: see the fields marked below.");
  setText($("problem"), texts.join(" "));
  $("problem").hidden = texts.length === 0;
  document.body.classList.toggle("stale", faults.length > 0);
}

function show(answer) {
  $("verdict").dataset.kind = answer.verdict.kind;
  setText($("verdict"), answer.verdict.title);
  setText($("line"), answer.policy.text);
  setText($("why"), answer.verdict.text);
  setText($("note"), answer.simulation.note);
  $("note").hidden = answer.simulation.note === "";
  facts($("plan-facts"), answer.plan);
  facts($("simulation-facts"), answer.simulation.facts);
  facts($("certificate-facts"), answer.verdict.facts);
  findings(answer.findings);
  copyable($("go"), `policy := ${answer.policy.go}` + (answer.budget ? `\npolicy.Budget = ${answer.budget}` : ""));
  copyable($("json"), JSON.stringify(answer.policy.document, null, 2));
  $("no-budget").hidden = state.budget === "none";
  charts.schedule.show(answer.schedule);
  charts.total.show(answer.total);
  charts.load.show(answer.simulation.load);
  charts.queue.show(answer.simulation.queue);
  document.body.dataset.drawn = Number(document.body.dataset.drawn ?? 0) + 1;
}

/** setText leaves a text alone that is the same already: a live region would say it again. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function copyable(field, text) {
  field.value = text;
  field.rows = text.split("\n").length + 1;
}

function facts(list, all) {
  list.replaceChildren(...all.map(({ label, value }) => element("div", {}, element("dt", {}, label), element("dd", {}, value))));
}

function findings(all) {
  const items = all.map(({ level, text, change }) =>
    element("li", { "data-level": level }, element("strong", {}, level + ":"), ` ${text} `, element("small", {}, change)));
  $("findings").replaceChildren(...(items.length ? items : [element("li", {}, "Nothing to say against this policy.")]));
}

for (const { label, title, state: preset } of presets) {
  const button = element("button", { type: "button", title }, label);
  button.addEventListener("click", () => {
    Object.assign(state, preset);
    controls.show();
    changed();
  });
  $("presets").append(button);
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const field = $(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(field.value);
      $("copied").textContent = "Copied.";
    } catch { // a browser that does not let the page write: the keyboard still can
      field.focus();
      field.select();
      $("copied").textContent = "Selected: press Ctrl+C or ⌘C to copy.";
    }
  });
}

new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--head", target.offsetHeight + "px"))
  .observe(document.querySelector("header"));
for (const form of document.forms) form.addEventListener("submit", (e) => e.preventDefault());
addEventListener("hashchange", () => {
  setState(location.hash);
  controls.show();
  changed();
});
let shown = String(room($("schedule")));
addEventListener("resize", () => {
  const now = String(room($("schedule")));
  if (now !== shown) changed();
  shown = now;
});
evaluate();
