// An answer as somebody reads it: one large number, or a chart and a table.

import { bars, draw, heat, line, MANY_BARS } from "./chart.js";
import { button, copy, el, note, svg, tableOf } from "./dom.js";
import { count, csv, digits, errorText, label, valueText } from "./format.js";

// No more bars, or cells of a heat map, than this make a chart.
const MOST_BARS = 120;
const MOST_CELLS = 2500;
const MOST_LINES = 500;

/** An answer for the page: {sql, answer} become an element that opens and closes. */
export function answerElement({ sql, answer, at }, columns) {
  const { measures, groups } = parts(answer);
  const inside = el("div", { class: "inside" });
  inside.append(groups.length ? el("div", {}) : numbers(answer, measures));
  inside.append(el("p", { class: "origin" }, ...origin(answer)));
  const summary = el("summary", {}, el("span", { class: "sql" }, sql), el("b", {}, brief(answer, measures, groups)));
  const found = el("details", { class: "answer", open: true }, summary, inside);
  if (groups.length) {
    fillGroups(inside, answer, measures, groups, columns, found);
    inside.append(table(answer, measures, groups));
  }
  inside.append(foot(answer, measures, groups, sql, at));
  return found;
}

function parts(answer) {
  const measures = answer.errors.map((name) => name.slice(0, -"_error".length));
  const others = new Set([...measures, ...answer.errors]);
  const groups = Object.keys(answer.columns).filter((name) => !others.has(name));
  return { measures, groups };
}

function brief(answer, measures, groups) {
  if (groups.length) return `${count(answer.columns[measures[0]].length)} groups`;
  if (measures.length > 1) return `${measures.length} numbers`;
  const { value, error } = valueAt(answer, measures[0], 0);
  return `${valueText(value, error)} ± ${errorText(error)}`;
}

const valueAt = ({ columns }, measure, place) =>
  ({ value: columns[measure][place], error: columns[`${measure}_error`][place] });

function numbers(answer, measures) {
  const each = measures.map((measure) => {
    const { value, error } = valueAt(answer, measure, 0);
    const title = measures.length > 1 ? el("h3", {}, measure) : null;
    const within = el("small", {}, `± ${errorText(error)}`);
    const number = el("p", { class: "number" }, valueText(value, error), " ", within);
    return el("div", {}, title, number, measures.length === 1 ? picture(value, error) : null);
  });
  return el("div", { class: measures.length > 1 ? "several" : "one" }, each);
}

/** How large the error is beside the value: a dot, its error bar, and zero. */
function picture(value, error) {
  if (value === null || !Number.isFinite(error) || error === null) return null;
  const low = Math.min(0, value - error);
  const high = Math.max(0, value + error) * 1.04 || 1;
  const width = Math.min(560, Math.max(240, innerWidth - 60));
  const place = (number) => 10 + ((width - 20) * (number - low)) / (high - low || 1);
  const [from, to] = [place(value - error), place(value + error)];
  const close = place(value) - place(0) < 130;
  const ends = [value - error, value + error].map((end) => valueText(end, error));
  const words = `between ${ends.join(" and ")}`;
  const facts = { class: "errorbar", viewBox: `0 0 ${width} 44`, role: "img", "aria-label": words };
  const band = { x: from, y: 10, width: Math.max(3, to - from), height: 12, rx: 6, fill: "var(--second)", opacity: 0.35 };
  return svg("svg", facts,
    svg("line", { x1: 10, x2: width - 10, y1: 16, y2: 16, stroke: "var(--line)", "stroke-width": 2 }),
    svg("line", { x1: place(0), x2: place(0), y1: 10, y2: 22, stroke: "var(--muted)" }),
    svg("text", { x: place(0), y: 38, "text-anchor": "middle" }, "0"),
    svg("rect", band),
    svg("circle", { cx: place(value), cy: 16, r: 6, fill: "var(--ours)" }),
    svg("text", { x: Math.min(place(value), width - 80), y: 38, "text-anchor": close ? "start" : "middle" },
      ends.join(" to ")));
}

function origin(answer) {
  const surely = `${digits(answer.confidence * 100)} %`;
  const left = answer.remaining ? `; epsilon ${digits(answer.remaining.epsilon, 2)} left` : "";
  const free = Object.keys(answer.cost)[0] === "Nothing";
  const without = answer.origin === "model" ? "a model's answer, which was checked: free" : "known: free";
  const paid = `measured for epsilon ${digits(answer.price)}${left}`;
  const how = el("span", { class: free ? "free" : "paid" }, free ? without : paid);
  return [how, el("span", { class: "note" }, ` · the error holds with ${surely} · protected: ${answer.neighbors}`)];
}

function fillGroups(inside, answer, measures, groups, columns, whole) {
  const chart = el("div", { class: "chart waiting" });
  let measure = measures[0];
  // A chart is as wide as its place, which it has only when the page has the answer and it is open.
  const show = () => {
    const spec = specOf(answer, measure, groups, columns);
    if (spec === null) chart.remove();
    else requestAnimationFrame(() => chart.clientWidth && draw(chart, spec));
  };
  if (measures.length > 1) {
    const choose = el("select", { "aria-label": "Shown in the chart" }, measures.map((name) => el("option", {}, name)));
    choose.addEventListener("change", () => {
      measure = choose.value;
      show();
    });
    inside.append(choose);
  }
  inside.append(chart);
  whole.addEventListener("toggle", () => whole.open && !chart.querySelector("svg") && show());
  show();
}

function specOf(answer, measure, groups, columns) {
  const length = answer.columns[measure].length;
  const rows = Array.from({ length }, (_, place) => {
    const { value, error } = valueAt(answer, measure, place);
    const sure = error === null || !Number.isFinite(error) ? 0 : error;
    const row = { value, error, low: value - sure, high: value + sure };
    const [first, second] = groups.map((name) => answer.columns[name][place]);
    return { ...row, group: first ?? "missing", first: label(first), second: label(second) };
  }).filter((row) => row.value !== null);
  if (groups.length > 2 || length > MOST_CELLS) return null;
  if (groups.length === 2) return heat(rows, { first: groups[0], second: groups[1], measure });
  const column = columns?.find((each) => each.name === groups[0]);
  const numeric = rows.every((row) => typeof row.group === "number");
  if ((column?.ordered || numeric) && length > MANY_BARS) return line(rows, { title: groups[0], measure, numeric });
  if (length > MOST_BARS) return null;
  const named = rows.map((row) => ({ ...row, group: label(row.group) }));
  return bars(named, { title: groups[0], measure, sorted: !column?.ordered && !numeric });
}

function table(answer, measures, groups) {
  const length = answer.columns[measures[0]].length;
  const places = Array.from({ length: Math.min(length, MOST_LINES) }, (_, place) => ({ place }));
  const columns = [
    ...groups.map((name) => ({ title: name, head: true, of: ({ place }) => label(answer.columns[name][place]) })),
    ...measures.flatMap((name) => [
      { title: name, class: "right", of: ({ place }) => valueText(...Object.values(valueAt(answer, name, place))) },
      { title: "±", class: "right", of: ({ place }) => errorText(valueAt(answer, name, place).error) },
    ]),
  ];
  const rest = length > MOST_LINES ? note(`… and ${count(length - MOST_LINES)} more; copy them as CSV.`) : null;
  const place = el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "The numbers" });
  place.append(tableOf(columns, places, "The answer as numbers"));
  return el("details", { open: length <= 20 }, el("summary", {}, `As a table, ${count(length)} rows`), place, rest);
}

function foot(answer, measures, groups, sql, at) {
  const names = Object.keys(answer.columns);
  const rows = () => answer.columns[measures[0]].map((_, place) => names.map((name) => answer.columns[name][place]));
  const time = new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return el("div", { class: "row between" },
    el("span", { class: "note" }, `asked at ${time}`),
    el("span", {},
      button("Copy question", () => copy(sql, "Question"), { class: "quiet" }),
      button("Copy as CSV", () => copy(csv(names, rows()), "CSV"), { class: "quiet" })));
}
