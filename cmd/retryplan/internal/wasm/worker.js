// The thread that computes. A message is a question, or "" to end the simulation of the one under way.
importScripts("wasm_exec.js");
const go = new Go();
const ready = fetch("retryplan.wasm").then((r) => r.arrayBuffer()).then((code) => WebAssembly.instantiate(code, go.importObject))
  .then(({ instance }) => void go.run(instance));
let stop = () => {};

onmessage = async ({ data }) => {
  await ready;
  if (data === "") stop();
  else stop = retryplan(data, (body, ok, last) => postMessage({ body, ok, last }));
};
