// The page: a state, fields that change it, and the answer to it, from a server or from a worker thread.
import { ask } from "./ask.js";
import { Chart, room } from "./charts.js";
import { Controls, element } from "./controls.js";
import { fields } from "./fields.js";

const $ = (id) => document.getElementById(id);
const debounce = 20; // ms: a question about each step of a slider would only be overtaken

const presets = await (await fetch("presets.json")).json();
const defaults = presets[0].state;
const state = {};
setState(location.hash);

const controls = new Controls(state, changed);
const charts = Object.fromEntries(["schedule", "load", "queue"].map((id) => [id, new Chart($(id))]));

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

/**
 * evaluate asks about the state and shows the answer: first the plan, then the count of simulations while it grows. A
 * question that is overtaken is aborted, and its answer not shown. Charts of the state before are pale until then.
 */
async function evaluate() {
  asked?.abort();
  const mine = (asked = new AbortController());
  document.body.setAttribute("aria-busy", "true");
  document.body.classList.add("pale");
  let faults = [], planned = false;
  const told = (body, last) => {
    if (mine.signal.aborted) return;
    tell([]);
    if (!planned) showPlan(body);
    planned = true;
    if (body.verdict) showStorm(body, last);
  };
  try {
    const { ok, body } = await ask(state, room($("schedule")), mine.signal, told);
    if (ok) told(body, true);
    else faults = body.errors;
  } catch {
    faults = [{ text: "retryplan does not answer. Is it still running?" }];
  }
  if (mine.signal.aborted) return;
  tell(faults);
  document.body.removeAttribute("aria-busy");
}

/** tell shows faults at their fields, and above all what no field shows; the last good picture stays, greyed. */
function tell(faults) {
  const texts = controls.fail(faults);
  if (faults.length > texts.length) texts.unshift("Not redrawn: see the fields marked below.");
  setText($("problem"), texts.join(" "));
  $("problem").hidden = texts.length === 0;
  document.body.classList.toggle("stale", faults.length > 0);
}

function showPlan(answer) {
  setText($("line"), answer.policy.text);
  setText($("story-title"), answer.story.title);
  setText($("story-text"), answer.story.text);
  facts($("plan-facts"), answer.plan);
  findings(answer.findings);
  copyable($("go"), `policy := ${answer.policy.go}` + (answer.budget ? `\npolicy.Budget = ${answer.budget}` : ""));
  copyable($("json"), JSON.stringify(answer.policy.document, null, 2));
  $("no-budget").hidden = state.budget === "none";
  charts.schedule.show(answer.schedule);
  $("verdict").dataset.kind = "counting";
  setText($("verdict"), "Counting simulations.");
  for (const [id, budget] of [["without", "none"], ["with", "client"]]) {
    const told = { ...defaults, budget };
    $(id).setAttribute("aria-pressed", String(fields.every(({ key }) => state[key] === told[key])));
  }
}

/** showStorm shows the count so far, or at last with the advice. Only the last title is read out. */
function showStorm({ verdict, simulation, advice }, last) {
  $("verdict").dataset.kind = verdict.kind;
  $("count").hidden = verdict.kind !== "counting";
  $("count").max = verdict.of;
  $("count").value = verdict.counted;
  $("verdict").setAttribute("aria-live", verdict.kind === "counting" ? "off" : "polite");
  setText($("verdict"), verdict.title);
  setText($("why"), verdict.text);
  setText($("note"), verdict.note);
  $("note").hidden = !verdict.note;
  facts($("verdict-facts"), verdict.facts);
  if (simulation) {
    setText($("simulation-title"), simulation.title);
    facts($("simulation-facts"), simulation.facts);
    charts.load.show(simulation.load);
    charts.queue.show(simulation.queue);
    document.body.classList.remove("pale");
  }
  $("advice-part").hidden = !advice;
  if (advice) {
    const items = advice.map(({ count, change, effect }) => element("li", {}, element("strong", {}, count), ` ${change} `, element("small", {}, effect)));
    $("advice").replaceChildren(...(items.length ? items : [element("li", {}, last ? "No change that was simulated does better." : "Simulating changes.")]));
  }
  if (last) document.body.dataset.drawn = Number(document.body.dataset.drawn ?? 0) + 1; // for tests
}

/** facts lists figures. What the terminal adds to a figure begins with punctuation. */
function facts(list, all) {
  list.replaceChildren(...all.map(({ name, figure, more }) => element("div", {}, element("dt", {}, name),
    element("dd", {}, figure, element("small", {}, more.replace(/^[,;:]? /, ""))))));
}

/** setText leaves a text alone that is the same already: a live region would say it again. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function copyable(field, text) {
  field.value = text;
  field.rows = text.split("\n").length + 1;
}

function findings(all) {
  const items = all.map(({ level, text }) => element("li", { "data-level": level }, element("strong", {}, level + ":"), ` ${text}`));
  $("findings").replaceChildren(...(items.length ? items : [element("li", {}, "Nothing to say against this policy.")]));
}

/** take sets the fields of a preset, and leaves the others alone. */
function take(preset) {
  Object.assign(state, preset);
  controls.show();
  changed();
}

for (const { label, title, state: preset } of presets) {
  const button = element("button", { type: "button", title }, label);
  button.addEventListener("click", () => {
    take(preset);
    if (preset === presets.at(-1).state) $("load").scrollIntoView({ block: "center" });
  });
  $("presets").append(button);
}
$("without").addEventListener("click", () => take(defaults));
$("with").addEventListener("click", () => take({ ...defaults, budget: "client" }));

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
let shown = room($("schedule")).width;
addEventListener("resize", () => { // a phone's own bars change the height as one scrolls, which is no reason to count again
  const now = room($("schedule")).width;
  if (now !== shown) changed();
  shown = now;
});
evaluate();
