// Asks the server of retryplan serve. In the static form of the page another ask.js is in the place of this one.

/** ask asks for a part of the answer about a state, "verdict" or "storm", and returns {ok, body}. */
export async function ask(state, part, room, signal) {
  const response = await fetch(`api/evaluate?${new URLSearchParams({ part, ...room })}`, {
    method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(state),
  });
  return { ok: response.ok, body: await response.json() };
}
