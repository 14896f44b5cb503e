// What the page does beyond its HTML: it stays live, selects rows and continues long actions.

const boxes = () => [...document.querySelectorAll("#rows tbody input[type=checkbox]")];

// The box that selects all rows, and how many are selected.
function selection() {
  const every = document.getElementById("every");
  if (!every) return;
  const all = boxes();
  const chosen = all.filter((box) => box.checked).length;
  document.getElementById("this-page").hidden = false;
  every.checked = chosen === all.length;
  every.indeterminate = chosen > 0 && chosen < all.length;
  const text = chosen ? `${chosen} selected` : "Select jobs to change them.";
  const shown = document.getElementById("selected");
  if (shown.textContent !== text) shown.textContent = text;
  shown.classList.toggle("some", chosen > 0);
}

let last = null;
document.addEventListener("click", (event) => {
  const box = event.target;
  if (box.id === "every") for (const one of boxes()) one.checked = box.checked;
  else if (box.name === "id") {
    const all = boxes();
    if (event.shiftKey && all.includes(last)) {
      const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((a, b) => a - b);
      for (const one of all.slice(from, to + 1)) one.checked = box.checked;
    }
    last = box;
  } else return;
  selection();
});

// A live page replaces its parts, but none that is in use.
async function refresh() {
  if (document.hidden) return;
  let fresh;
  try {
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    return; // the server is away, and the next try may find it
  }
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = fresh.getElementById(part.getAttribute("id")); // form.id may be a field of that name
    const used = part.contains(document.activeElement) || part.querySelector("input[type=checkbox]:checked, details[open]");
    if (next && !used && part.innerHTML !== next.innerHTML) part.replaceWith(document.adoptNode(next));
  }
  selection();
}

const live = Number(document.body.dataset.live);
if (live > 0) setInterval(refresh, live * 1000);
selection();

const more = document.querySelector("[data-continue]");
if (more) more.requestSubmit(more.querySelector("button"));
