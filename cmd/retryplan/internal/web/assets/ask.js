// Asks the server of retryplan serve. In the static form of the page another ask.js is in the place of this one.

/** ask asks about a state, calls told with the answer as it grows, and returns {ok, body}. */
export async function ask(state, room, signal, told) {
  const response = await fetch(`api/evaluate?${new URLSearchParams(room)}`, {
    method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(state),
  });
  if (!response.ok) return { ok: false, body: await response.json() };
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", body;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return { ok: !body.errors, body };
    const lines = (text + value).split("\n");
    text = lines.pop();
    if (lines.length === 0) continue;
    body = JSON.parse(lines.at(-1)); // each line has all that is known by then
    if (!body.errors) told(body);
  }
}
