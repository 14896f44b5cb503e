// Charts: uPlot with the page's colours. Each figure has a picture with its summary as text alternative, and a table.
/* global uPlot */

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

/** time returns seconds as text, to three digits: "250ms", "1m30s", "3h". */
export function time(s) {
  if (s == null) return "";
  if (s === 0) return "0";
  const digits = (x) => Number(x.toPrecision(3));
  if (s < 1e-3) return digits(s * 1e6) + "µs";
  if (s < 0.9995) return digits(s * 1e3) + "ms";
  if (s < 60) return digits(s) + "s";
  const [big, small, ofBig, ofSmall] = s < 3600 ? [60, 1, "m", "s"] : [3600, 60, "h", "m"];
  const all = Math.round(s / small);
  const rest = all % (big / small);
  return Math.floor(all / (big / small)) + ofBig + (rest ? rest + ofSmall : "");
}

// Distances between ticks that are round on a clock.
const ticks = [];
for (let e = -9; e < 1; e++) for (const m of [1, 2, 5]) ticks.push(Number((m * 10 ** e).toPrecision(1)));
ticks.push(10, 15, 30, ...[1, 2, 5, 10, 15, 30].map((m) => m * 60), ...[1, 2, 3, 6, 12, 24, 48, 96, 168].map((h) => h * 3600));
for (let weeks = 2; weeks < 1e9; weeks *= 2) ticks.push(weeks * 604800);

const wholes = [];
for (let e = 0; e < 9; e++) for (const m of [1, 2, 5]) wholes.push(m * 10 ** e);

const count = (x) => (x == null ? "" : x >= 1e6 ? Number((x / 1e6).toPrecision(3)) + "M" : x >= 1e4 ? Number((x / 1e3).toPrecision(3)) + "k" : String(Number(x.toPrecision(3))));
const percent = (x) => (x == null ? "" : Number((100 * x).toPrecision(3)) + " %");

function axis(values, more) {
  return { stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid"), width: 1 },
    font: "12px system-ui, sans-serif", values: (_, splits) => splits.map((v) => (v == null ? "" : values(v))), ...more };
}

const upwards = { range: (_, lo, hi) => [0, hi > 0 ? hi * 1.05 : 1] };

const kinds = {
  schedule: {
    height: 230,
    data: (d) => [d.attempt, d.lo, d.hi, d.mean, d.never],
    options: () => ({
      scales: { x: { time: false, range: (_, lo, hi) => [lo - 0.7, hi + 0.7] }, y: upwards },
      axes: [axis(String, { incrs: wholes, size: 34 }), axis(time, { incrs: ticks, size: 62 })],
      series: [
        { label: "Attempt", value: (_, v) => v ?? "" },
        { label: "Least", stroke: "transparent", points: { show: false }, value: (_, v) => time(v) },
        { label: "Most", stroke: colour("one"), fill: colour("band"), width: 1, points: { show: false },
          paths: uPlot.paths.bars({ size: [0.6, 46] }), value: (_, v) => time(v) },
        { label: "Mean", stroke: colour("two"), fill: colour("two"), paths: () => null, points: { show: true, size: 8, fill: colour("two") }, value: (_, v) => time(v) },
        { label: "Never starts", stroke: colour("soft"), paths: () => null, points: { show: true, size: 8, fill: colour("card") }, value: (_, v) => time(v) },
      ],
      bands: [{ series: [2, 1] }],
    }),
  },
  total: {
    height: 210,
    data: (d) => [d.seconds, d.cdf],
    options: () => ({
      scales: { x: { time: false }, y: { range: [0, 1.03] } },
      axes: [axis(time, { incrs: ticks, size: 34, space: 56 }), axis(percent, { incrs: [0.1, 0.25, 0.5], size: 62 })],
      series: [
        { label: "Waited at most", value: (_, v) => time(v) },
        { label: "Share of runs", stroke: colour("one"), fill: colour("band"), width: 2, points: { show: false }, value: (_, v) => percent(v) },
      ],
    }),
  },
  load: {
    height: 260,
    data: (d) => [d.seconds, d.offered, d.attempts, d.goodput],
    options: (shade) => ({
      ...inTime(shade),
      series: [
        { label: "Time", value: (_, v) => time(v) },
        { label: "Offered", stroke: colour("soft"), width: 1.5, dash: [6, 4], points: { show: false }, value: (_, v) => count(v) },
        { label: "Attempts", stroke: colour("two"), width: 1.5, points: { show: false }, value: (_, v) => count(v) },
        { label: "Goodput", stroke: colour("one"), width: 2.5, points: { show: false }, value: (_, v) => count(v) },
      ],
    }),
  },
  queue: {
    height: 150,
    data: (d) => [d.seconds, d.queue],
    options: (shade) => ({
      ...inTime(shade, { incrs: wholes }),
      series: [
        { label: "Time", value: (_, v) => time(v) },
        { label: "Queue", stroke: colour("three"), width: 2, points: { show: false }, value: (_, v) => count(v) },
      ],
    }),
  },
};

/** inTime is what the charts of the simulation share: the axis of time, the trigger's shade and the cursor. */
function inTime(shade, more) {
  return {
    scales: { x: { time: false }, y: upwards },
    axes: [axis(time, { incrs: ticks, size: 34, space: 56 }), axis(count, { size: 62, ...more })],
    cursor: { sync: { key: "simulation" } },
    hooks: { drawClear: [(u) => {
      const [from, to] = shade();
      const left = u.valToPos(from, "x", true), right = u.valToPos(to, "x", true);
      u.ctx.fillStyle = colour("shade");
      u.ctx.fillRect(left, u.bbox.top, Math.max(right - left, 2), u.bbox.height);
    }] },
  };
}

/** Chart draws one kind of chart in a figure. */
export class Chart {
  #kind; #box; #body; #head; #plot; #data;

  constructor(figure, kind) {
    this.#kind = kinds[kind];
    this.#box = document.createElement("div");
    this.#box.className = "chart";
    this.#box.setAttribute("role", "img");
    const details = document.createElement("details");
    details.innerHTML = '<summary>As a table</summary><div class="scroll" tabindex="0"><table class="data"><thead></thead><tbody></tbody></table></div>';
    details.querySelector(".scroll").setAttribute("aria-label", figure.querySelector("figcaption").firstChild.textContent.trim());
    details.querySelector(".scroll").setAttribute("role", "region");
    [this.#head, this.#body] = details.querySelectorAll("thead, tbody");
    figure.append(this.#box, details);
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(this.#box);
  }

  #size() {
    const most = matchMedia("(max-width: 55.99rem)").matches ? innerHeight * 0.22 : Infinity; // as style.css has it
    return { width: this.#box.clientWidth, height: Math.min(this.#kind.height, most) };
  }

  /** draw shows an answer's data. */
  draw(data) {
    this.#data = data;
    this.#box.setAttribute("aria-label", data.summary);
    this.#head.replaceChildren(line(data.table.head, "col"));
    this.#body.replaceChildren(...data.table.rows.map((r) => line(r, "row")));
    this.#box.classList.toggle("never", data.never?.some((v) => v != null) ?? false);
    const columns = this.#kind.data(data);
    if (this.#plot) this.#plot.setData(columns);
    else this.#plot = new uPlot({ ...this.#size(), ...this.#kind.options(() => this.#data.trigger) }, columns, this.#box);
  }

  /** redraw shows the same in the colours that are in force now. */
  redraw() {
    if (!this.#plot) return;
    this.#plot.destroy();
    this.#plot = undefined;
    this.draw(this.#data);
  }
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
