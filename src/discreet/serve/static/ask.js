// Ask: a question, its price before paying, and the answer with its error.

import { answerElement } from "./answer.js";
import { get, newKey, post, table, tablePath, who } from "./api.js";
import { Builder } from "./builder.js";
import { expectChart } from "./chart.js";
import { button, byId, el, guarded, note, toast } from "./dom.js";
import { count, errorText, label, roundedUp } from "./format.js";
import { Price } from "./price.js";
import { countBy, literal, named } from "./sql.js";

// How many answers are kept while the tab is open, and the largest one, in characters.
const KEPT = 20;
const LARGEST = 100_000;
const memory = `discreet ${who} ${table}`;

const box = byId("sql");
let columns = [];
let left = 0;

const price = new Price({
  wish: () => ({
    question: box.value,
    error: Number(byId("error").value),
    confidence: Number(byId("confidence").value),
    joint: byId("joint").checked,
  }),
  left: () => left,
  spread: (question) => {
    const asked = /\bavg\s*\(\s*(?:"((?:[^"]|"")*)"|(\w+))/i.exec(question);
    if (!asked) return null;
    const name = (asked[1]?.replaceAll('""', '"') ?? asked[2]).toLowerCase();
    const { lower, upper } = columns.find((column) => column.name.toLowerCase() === name) ?? {};
    return upper > lower ? upper - lower : 50;
  },
  said: (text) => {
    byId("problem").textContent = text;
    if (text) box.setAttribute("aria-invalid", "true");
    else box.removeAttribute("aria-invalid");
  },
});

function changed() {
  const grouped = /\bgroup\s+by\b/i.test(box.value);
  byId("joint-field").hidden = !grouped;
  if (grouped) expectChart();
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
  byId("refusal").hidden = true;
  sessionStorage.setItem(`${memory} question`, box.value);
  price.changed();
}

function write(sql) {
  box.value = sql;
  changed();
}

function insert(text) {
  const [from, to] = [box.selectionStart, box.selectionEnd];
  const space = from > 0 && !/[\s(]/.test(box.value[from - 1]) ? " " : "";
  box.setRangeText(space + text, from, to, "end");
  box.focus();
  changed();
}

const words = { bins: "bins", "ordered categories": "in order" };

function columnItem({ name, kind, cells, values, more, lower, upper, numeric }) {
  const what = numeric ? `${label(lower)} to ${label(upper)}` : `${count(cells)} ${words[kind] ?? "values"}`;
  const put = button(name, () => insert(named(name)), { class: "put", title: "Put it into the question" });
  if (numeric) return el("li", {}, el("div", { class: "column" }, put, el("span", { class: "note" }, what)));
  const list = el("div", { class: "values", hidden: true },
    values.map((value) => button(label(value), () => insert(literal(value)))),
    more ? el("span", { class: "note" }, `and ${count(more)} more`) : null);
  const open = () => {
    list.hidden = !list.hidden;
    toggle.setAttribute("aria-expanded", String(!list.hidden));
  };
  const toggle = button(what, open, { class: "quiet", "aria-expanded": "false", "aria-label": `${what} of ${name}` });
  return el("li", {}, el("div", { class: "column" }, put, toggle), list);
}

async function showKnown() {
  const known = await get(`${tablePath()}/known`);
  const found = known.filter(({ columns: names, error }) => names.length && error !== null);
  found.sort((one, other) => one.error - other.error);
  // Marginals that are a hundred times less accurate than the best are left out.
  const useful = found.filter(({ error }) => error <= 100 * found[0].error).slice(0, 8);
  const choose = (names, error) => {
    write(countBy(table, names));
    price.chosen(roundedUp(error));
    box.focus();
  };
  const chips = useful.map(({ columns: names, error }) =>
    button(`${names.join(" × ")} ± ${errorText(error)}`, () => choose(names, error)));
  byId("chips").replaceChildren(el("span", { class: "note" }, "Known for free:"), ...chips);
  byId("chips").hidden = !chips.length;
}

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(`${memory} answers`)) ?? [];
  } catch {
    return [];
  }
}

function keep(found) {
  if (JSON.stringify(found).length > LARGEST) return;
  try {
    sessionStorage.setItem(`${memory} answers`, JSON.stringify([found, ...kept()].slice(0, KEPT)));
  } catch {
    toast("This browser keeps no more answers; copy those you need.");
  }
}

function show(found) {
  for (const older of byId("answers").children) older.open = false;
  byId("answers").prepend(answerElement(found, columns));
  byId("none").hidden = true;
}

function refused(problem) {
  const charged = /is charged: epsilon/.test(problem.message);
  const refusal = charged ? "Not answered; what was measured before is charged" : "Not asked, and nothing was charged";
  const title = problem.status ? refusal : "No answer came";
  const number = (pattern) => Number(pattern.exec(problem.message)?.[1].replaceAll(",", ""));
  const free = problem.status ? price.freeButton({}, number(/for free with error ([\d,.e+-]+\d)/)) : null;
  // What a program would do without an error is a button here.
  const said = free ? problem.message.replace(/\n[^\n]*for free with error[^\n]*/, "") : problem.message;
  const parts = [el("h3", {}, title), el("p", {}, said)];
  if (problem.status && !byId("chips").hidden) parts.push(note("What is known stays free: see the questions above."));
  const enough = number(/error >= ([\d,.e+]+)/);
  const allow = enough > 0 ? button(`Allow ± ${errorText(enough)}`, () => price.chosen(enough)) : null;
  const ways = el("div", { class: "row" }, allow, free);
  ways.addEventListener("click", () => byId("ask").focus());
  byId("refusal").replaceChildren(...parts, ways);
  byId("refusal").hidden = false;
}

async function ask() {
  const wish = price.wish();
  const press = byId("ask");
  if (!wish.question.trim() || press.disabled) return;
  press.disabled = true;
  press.textContent = "Asking…";
  byId("refusal").hidden = true;
  price.said("");
  try {
    // The key makes a second try after a lost connection safe: it is paid once.
    const answer = await post(`${tablePath()}/ask`, wish, { key: newKey() });
    const found = { sql: wish.question.trim(), answer, at: Date.now() };
    show(found);
    byId("announced").textContent = `Answer: ${byId("answers").querySelector("summary b").textContent}`;
    keep(found);
    if (answer.remaining) left = answer.remaining.epsilon;
    price.changed();
    guarded(showKnown)();
  } catch (problem) {
    if (problem.status === 402) refused(problem);
    else if (problem.status) price.said(problem.message);
    else refused(problem);
  } finally {
    press.disabled = false;
    press.textContent = "Ask";
  }
}

async function begin() {
  const asked = new URLSearchParams(location.hash.slice(1)).get("q");
  // Before anything is waited for: what a person types meanwhile stays.
  box.value = asked ?? (sessionStorage.getItem(`${memory} question`) || `SELECT COUNT(*) FROM ${named(table)}`);
  const facts = await get(tablePath());
  columns = facts.columns;
  left = facts.remaining.epsilon;
  byId("columns").replaceChildren(...columns.map(columnItem));
  const builder = new Builder(byId("builder"), table, columns, write);
  const modes = [...document.getElementsByName("mode")];
  const chosen = () => {
    const building = modes.some(({ checked, value }) => checked && value === "build");
    byId("builder").hidden = !building;
    if (building) builder.write();
  };
  for (const mode of modes) mode.addEventListener("change", chosen);
  // A person may have chosen to build before the columns came.
  chosen();
  for (const found of kept().reverse()) show(found);
  changed();
  await showKnown();
}

box.addEventListener("input", changed);
for (const id of ["confidence", "joint"]) byId(id).addEventListener("change", changed);
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    ask();
  }
});
byId("ask").addEventListener("click", ask);
byId("error").addEventListener("keydown", (event) => event.key === "Enter" && !event.ctrlKey && ask());
if (matchMedia("(max-width: 900px)").matches) byId("schema").open = false;
if (/mac/i.test(navigator.platform)) byId("keys").textContent = "⌘ + Enter asks";
guarded(begin, "problem")();
