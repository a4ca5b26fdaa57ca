// Budget: what is left in words, where it went, and what it means to a person.

import { accountsTable } from "./accounts.js";
import { get, latest, tablePath } from "./api.js";
import { bars, draw, steps } from "./chart.js";
import { byId, el, note } from "./dom.js";
import { count, digits, errorText, percent, plural, sentence } from "./format.js";

let facts;

function left() {
  byId("words").textContent = sentence(facts.words);
  const { cap, remaining } = facts;
  const share = percent(facts.share_left);
  const bar = el("div", { style: `width: ${100 * facts.share_left}%` });
  byId("share").replaceChildren(
    el("div", { class: "share", role: "img", "aria-label": `${share} is left` }, bar),
    note(`${share} is left: epsilon ${digits(remaining.epsilon)} of ${digits(cap.epsilon)}, delta ${digits(cap.delta)}.`));
  byId("counts").replaceChildren(...facts.counts.map(({ error, counts }) =>
    el("div", { class: "tile" }, el("b", {}, count(counts)), el("span", {}, `more at ± ${errorText(error)}`))));
  byId("protects").textContent = `Protected: ${facts.protects}.`;
}

function pictures() {
  const unit = document.querySelector("input[name=unit]:checked").value;
  const time = byId("over-time");
  if (facts.over_time.length) {
    const rows = facts.over_time.map((point) => ({ at: point.at, value: point[unit] }));
    draw(time, steps(rows, { measure: `${unit} spent`, format: unit === "share" ? "~%" : "~r" }));
  } else time.replaceChildren(note("Nothing was spent yet."));
  const people = byId("by-analyst");
  if (facts.by_analyst.length) {
    const rows = facts.by_analyst.map((one) => {
      const value = unit === "share" ? 100 * one.share : one.epsilon;
      return { group: `${one.analyst}, ${plural(one.spends, "spend")}`, value };
    });
    const measure = unit === "share" ? "% of the budget" : "epsilon";
    draw(people, bars(rows, { title: "analyst", measure, sorted: true }));
  } else people.replaceChildren(note("Nobody has spent anything yet."));
}

const load = latest(async (signal, all) => {
  const error = Number(byId("error").value);
  if (!(error > 0)) return;
  try {
    facts = await get(`${tablePath()}/budget?error=${error}`, { signal });
  } catch (problem) {
    if (problem.name !== "AbortError") byId("words").textContent = problem.message;
    return;
  }
  left();
  byId("accounts").replaceChildren(accountsTable(facts.accounts, error));
  if (!all) return;
  pictures();
  const sentences = facts.meaning.flatMap(({ title, sentence: text }) => [el("dt", {}, title), el("dd", {}, text)]);
  byId("meaning").replaceChildren(...sentences);
}, 200);

byId("error").addEventListener("input", () => load(false));
for (const unit of document.getElementsByName("unit")) unit.addEventListener("change", pictures);
load(true);
