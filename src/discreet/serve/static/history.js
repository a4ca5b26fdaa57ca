// History: what was paid for, by whom, with its receipt.

import { get, latest, role, tablePath } from "./api.js";
import { byId, copyButton, el, guarded, note, options, tableOf } from "./dom.js";
import { count, digits, plural, when } from "./format.js";

const PAGE = 50;
let shown = [];

function query(more = {}) {
  const asked = { text: byId("text").value.trim(), analyst: byId("analyst").value, ...more };
  return new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== "" && value !== null)).toString();
}

/** What is known of it now is free. */
function again({ why }) {
  if (role === "auditor" || !/^\s*select\b/i.test(why)) return "";
  return el("a", { href: `ask#q=${encodeURIComponent(why)}` }, "again");
}

function receipt(row) {
  const short = `${row.sequence} · ${row.receipt.split(" ").at(-1).slice(0, 8)}`;
  return el("span", {}, el("code", { title: row.receipt }, short), copyButton(row.receipt, "Receipt"));
}

function table() {
  const columns = [
    { title: "When", class: "tight", of: (row) => el("time", { datetime: row.at }, when(row.at)) },
    { title: "Who", of: (row) => row.analyst },
    { title: "Question", class: "sql", of: (row) => row.why },
    { title: "Price ε", class: "right", of: (row) => digits(row.price) },
    { title: "Answered", of: (row) => (row.answered ? "yes" : el("span", { class: "warning" }, "no")) },
    { title: "Receipt", class: "tight", of: receipt },
    { title: "Ask again", quiet: true, of: again },
  ];
  return tableOf(columns, shown, "Spends, the newest first", "stack");
}

async function load(signal, more) {
  const before = more && shown.length ? shown.at(-1).sequence : null;
  const found = await get(`${tablePath()}/history?${query({ limit: PAGE, before })}`, { signal });
  shown = before === null ? found.spends : [...shown, ...found.spends];
  byId("spends").replaceChildren(shown.length ? table() : note("Nothing like this was paid for."));
  const some = shown.length < found.total ? `, the newest ${count(shown.length)} shown` : "";
  byId("total").textContent = `${plural(found.total, "spend")}${some}`;
  byId("more").hidden = !found.more;
  for (const form of ["csv", "jsonl"]) byId(form).href = `/v1${tablePath()}/history/export?${query({ form })}`;
}

const refresh = latest(guarded(load, "problem"), 200);

async function people() {
  if (role === "analyst") return;
  const { by_analyst: names } = await get(`${tablePath()}/budget`);
  options(byId("analyst"), [["", "everybody"], ...names.map(({ analyst }) => [analyst, analyst])]);
}

byId("filter").addEventListener("submit", (event) => event.preventDefault());
byId("text").addEventListener("input", () => refresh(false));
byId("analyst").addEventListener("change", () => refresh(false));
byId("more").addEventListener("click", () => refresh(true));
refresh(false);
guarded(people)();
