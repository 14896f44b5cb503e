// The fields of the page: what each is called, and where its slider stops. A stop is a text such as one types, so that the
// slider and the text field beside it say the same; "" is "not given".

const mantissas = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];

/** decades returns round numbers from 10^from up to 10^to, evenly on a logarithmic scale. */
function decades(from, to) {
  const stops = [];
  for (let e = from; e < to; e++) {
    for (const m of mantissas) stops.push(String(Number((m * 10 ** e).toPrecision(2))));
  }
  return [...stops, String(10 ** to)];
}

function even(from, to, step) {
  const stops = [];
  for (let i = 0; from + i * step <= to + step / 2; i++) stops.push(String(Number((from + i * step).toFixed(4))));
  return stops;
}

const whole = (stops) => [...new Set(stops.filter((s) => !s.includes(".")))];

const clock = [
  ...decades(0, 3).slice(0, -1).map((n) => n + "ms"),
  ...decades(0, 1).slice(0, -1).map((n) => n + "s"), ..."10s 12s 15s 20s 25s 30s 40s 50s".split(" "),
  ..."1m 1m15s 1m30s 2m 2m30s 3m 4m 5m 6m 8m 10m 12m 15m 20m 25m 30m 40m 50m".split(" "),
  ..."1h 1h30m 2h 3h 4h 6h 8h 12h 18h 24h 36h 48h 72h 120h 168h".split(" "),
];

/** between returns the durations of the clock from first to last, and "" before them where none is a choice. */
function between(first, last, none) {
  const stops = clock.slice(clock.indexOf(first), clock.indexOf(last) + 1);
  return none ? ["", ...stops] : stops;
}

const hasFormula = (s) => s.mode !== "list";
const hasFactor = (s) => s.mode === "exponential" || s.mode === "linear";
const factors = { slowdown: ["1 or more: work takes so many times as long", "4"], capacity_cut: ["0 to 1: the share that is left", "0.2"],
  surge: ["arrivals come so many times as often", "4"], failing: ["0 to 1: the share of attempts that fail", "0.5"] };

// empty is what stands in an empty text field: what the server then takes. shown says when a field has a use.
const policyFields = [
  { key: "name", label: "Name", empty: "none" },
  { key: "max_attempts", label: "Attempts", unit: "the first included", empty: "8", stops: [...even(1, 20, 1), "unlimited"] },
  { key: "mode", label: "Delays", options: { exponential: "exponential", linear: "linear", fixed: "fixed", list: "a list" } },
  { key: "base", label: "Base", unit: "the first delay", empty: "5s", stops: between("1ms", "1h"), shown: hasFormula },
  { key: "factor", label: "Factor", unit: "growth per attempt", empty: (s) => (s.mode === "linear" ? "1" : "2"), stops: even(1, 5, 0.1), shown: hasFactor },
  { key: "delays", label: "List of delays", unit: "with commas between them", wide: true, shown: (s) => s.mode === "list" },
  { key: "cap", label: "Cap", unit: "the longest delay", empty: (s) => (s.mode === "list" ? "none" : "1h"), stops: between("10ms", "168h", true) },
  { key: "jitter", label: "Jitter", options: { none: "none", full: "full", equal: "equal", ratio: "ratio", decorrelated: "decorrelated" } },
  { key: "jitter_ratio", label: "Jitter ratio", unit: "half the window, as a share", empty: "0.2", stops: even(0.05, 1, 0.05), shown: (s) => s.jitter === "ratio" },
  { key: "attempt_timeout", label: "Attempt timeout", empty: "none", stops: between("10ms", "10m", true) },
  { key: "ttl", label: "TTL", unit: "no attempt starts later", empty: "none", stops: between("100ms", "168h", true) },
  { key: "max_hint", label: "Longest hint", unit: "of a server, that is obeyed", empty: "1h", stops: between("1s", "168h") },
  { key: "reset_after", label: "Reset after", unit: "an attempt that lasts so long", empty: "never", stops: between("1s", "24h", true) },
  { key: "inline", label: "A caller waits for it", options: { yes: "yes", no: "no, a queue" } },
  { key: "deadline", label: "Deadline", unit: "of the caller", empty: "none", stops: between("100ms", "1h", true) },
];

const fleetFields = [
  { key: "clients", label: "Clients", empty: "1", stops: whole(decades(0, 5)) },
  { key: "rate", label: "Rate", unit: "runs a second, all clients", empty: "10", stops: decades(0, 4) },
  { key: "capacity", label: "Capacity", unit: "attempts a second", empty: "100", stops: decades(0, 4) },
  { key: "duration", label: "Attempt takes", unit: "while the backend works", empty: "no time", stops: between("1ms", "1m", true) },
  { key: "failure", label: "Failure rate", unit: "0 to 1, of an attempt in calm", empty: "0", stops: even(0, 1, 0.01) },
  { key: "trigger", label: "Trigger", unit: "what happens to the backend for a while", options: { none: "none", stall: "stall", slowdown: "slowdown", capacity_cut: "capacity cut", surge: "surge", outage: "outage", failing: "failing" } },
  { key: "trigger_length", label: "Trigger lasts", empty: "10s", stops: between("100ms", "10m"), shown: (s) => s.trigger !== "none" },
  { key: "trigger_factor", label: "Trigger factor", unit: (s) => factors[s.trigger]?.[0], empty: (s) => factors[s.trigger]?.[1], shown: (s) => s.trigger in factors },
  { key: "budget", label: "Retry budget", options: { none: "none", client: "one per client", shared: "one for all" } },
  { key: "budget_ratio", label: "Budget ratio", unit: "retries per success", empty: "0.1", stops: even(0.01, 0.5, 0.01), shown: (s) => s.budget !== "none" },
  { key: "budget_burst", label: "Stored tokens", unit: "saved up in calm; each pays for a retry", empty: "10", stops: whole(decades(0, 3)), shown: (s) => s.budget !== "none" },
];

export const fields = [
  ...policyFields.map((f) => ({ group: "policy", ...f })),
  ...fleetFields.map((f) => ({ group: "fleet", ...f })),
];

const units = { ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

/** size returns a text's number, a duration's seconds; undefined for what is neither. It only places the slider. */
function size(text) {
  if (text === "unlimited") return Infinity;
  if (text.trim() !== "" && !Number.isNaN(Number(text))) return Number(text);
  const parts = text.trim().match(/^(?:[\d.]+(?:ns|us|µs|ms|s|m|h))+$/) && text.match(/[\d.]+(?:ns|us|µs|ms|s|m|h)/g);
  return parts?.reduce((sum, p) => sum + parseFloat(p) * units[p.replace(/[\d.]+/, "")], 0);
}

/** nearest returns the index of the stop that is next to text on a logarithmic scale. */
export function nearest(stops, text) {
  const exact = stops.indexOf(text);
  if (exact >= 0) return exact;
  const wanted = size(text);
  const plain = (t) => !Number.isNaN(Number(t));
  if (wanted === undefined || plain(text) !== plain(stops[1])) return undefined; // "250" is no duration
  let best = 0, least = Infinity;
  stops.forEach((stop, i) => {
    const far = stop === "" ? Infinity : Math.abs(Math.log(((size(stop) || 1e-9) / (wanted || 1e-9))));
    if (far < least) [best, least] = [i, far];
  });
  return best;
}
