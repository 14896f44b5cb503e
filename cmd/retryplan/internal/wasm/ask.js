// Asks a worker thread in which package retryplan runs as WebAssembly, so that the page stays alive.
const worker = new Worker("worker.js");
let current, next; // the question under way, and the newest one that waits for its end

worker.onmessage = ({ data }) => {
  const { resolve, told, signal } = current;
  if (!data.last) {
    if (!signal.aborted) told(JSON.parse(data.body));
    return;
  }
  current = undefined;
  resolve({ ok: data.ok, body: JSON.parse(data.body) });
  if (next) send(next);
};
worker.onerror = (e) => current?.reject(new Error(e.message));

function send(question) {
  [current, next] = [question, undefined];
  worker.postMessage(question.text);
}

/** ask asks about a state, calls told with the answer as it grows, and returns {ok, body}. */
export function ask(state, room, signal, told) {
  return new Promise((resolve, reject) => {
    const question = { text: JSON.stringify({ state, ...room }), resolve, reject, told, signal };
    signal.addEventListener("abort", () => {
      reject(signal.reason);
      if (next === question) next = undefined;
      if (current === question) worker.postMessage(""); // ends its simulation
    });
    if (current) next = question;
    else send(question);
  });
}
