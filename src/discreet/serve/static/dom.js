// Elements, made one by one: no text of anybody ever becomes HTML.

export const byId = (id) => document.getElementById(id);

/** An element with attributes, listeners (`onclick`) and children. */
export const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);

/** The same for pictures. */
export const svg = (tag, attributes, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * A table: `columns` are {title, of, class, head, quiet}; `of` makes a cell of a row, and a quiet title is for screen readers only.
 * One of the kind "stack" becomes a list of cards where the page is narrow.
 */
export function tableOf(columns, rows, caption, kind) {
  const head = el("tr", {}, columns.map((one) =>
    el("th", { scope: "col", class: one.class }, one.quiet ? el("span", { class: "hidden" }, one.title) : one.title)));
  const cell = (one, row) => {
    const facts = { class: one.class, scope: one.head ? "row" : null, "data-title": one.quiet ? null : one.title };
    return el(one.head ? "th" : "td", facts, one.of(row) ?? "");
  };
  const body = rows.map((row) => el("tr", { class: row.class }, columns.map((one) => cell(one, row))));
  const title = el("caption", { class: "hidden" }, caption);
  return el("table", { class: kind }, title, el("thead", {}, head), el("tbody", {}, body));
}

export function options(select, choices, chosen) {
  const each = choices.map(([value, title]) => el("option", { value, selected: value === chosen }, title));
  select.replaceChildren(...each);
}

/** Small words, and a button that says what it does. */
export const note = (text) => el("p", { class: "note" }, text);
export const button = (title, onclick, more) => el("button", { type: "button", onclick, ...more }, title);

let fading;

/** Say something small and let it go again. */
export function toast(text) {
  const place = byId("toast");
  place.textContent = text;
  place.classList.add("seen");
  clearTimeout(fading);
  fading = setTimeout(() => place.classList.remove("seen"), 2600);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS, browsers give the clipboard only to what is selected.
    const area = document.body.appendChild(el("textarea", { class: "hidden" }));
    area.value = text;
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`${what} copied`);
}

export const copyButton = (text, what, title = "Copy") =>
  button(title, () => copy(text, what), { class: "quiet", "aria-label": `Copy ${what.toLowerCase()}` });

/** Whatever fails while a page is filled is said, not swallowed. */
export function guarded(work, place) {
  return async (...given) => {
    const said = place && byId(place);
    if (said) said.textContent = "";
    try {
      await work(...given);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (said) said.textContent = error.message;
      else toast(error.message);
    }
  };
}
