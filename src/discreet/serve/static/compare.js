// One release: its statement, its downloads, and its marginals beside what is known.

import { get, latest, tablePath } from "./api.js";
import { beside, draw, heat, line, MANY_BARS } from "./chart.js";
import { byId, el, guarded, options } from "./dom.js";
import { count, digits, errorText, percent, sentence } from "./format.js";

// More cells than this are a heat map.
const MOST_BARS = 80;
const IN_ORDER = ["integers", "bins", "dates", "ordered categories"];
let path;
let kinds;

/** Fill the section of a release. */
export async function showRelease(job) {
  path = `${tablePath()}/releases/${job.id}`;
  const card = await get(`${path}/card`);
  byId("one").hidden = false;
  byId("one-title").textContent = sentence(job.describe);
  byId("headline").textContent = card.guaranteed[0];
  const total = card.errors.reduce((sum, one) => sum + one.weight, 0);
  const mean = card.errors.reduce((sum, one) => sum + one.weight * one.error, 0) / (total || 1);
  const tile = (number, words) => el("div", { class: "tile" }, el("b", {}, number), el("span", {}, words));
  byId("facts").replaceChildren(
    tile(percent(mean), "mean error of a marginal"),
    tile(digits(card.spent.epsilon), `epsilon, delta ${digits(card.spent.delta)}`),
    tile(count(card.rows), `rows, ± ${errorText(card.rows_error)}`),
    tile(card.method, "method"));
  const link = (what, title, more) => el("a", { class: "button", href: `/v1${path}/${what}`, ...more }, title);
  const file = { download: true };
  byId("downloads").replaceChildren(
    link("rows?form=parquet", "Rows, Parquet", file),
    link("rows?form=csv", "Rows, CSV", file),
    link("card?form=html", "Card, page", { target: "_blank", rel: "noopener" }),
    link("card?form=json", "Card, JSON", file),
    link("folder", "Everything, zip", file));
  const part = (title, sentences) => [el("h3", {}, title), el("ul", {}, sentences.map((text) => el("li", {}, text)))];
  byId("card").replaceChildren(
    ...part("Guaranteed", card.guaranteed),
    ...part("Estimated", card.estimated),
    ...part("Not promised", card.not_promised));
  const names = card.columns.map(({ name }) => [name, name]);
  kinds = new Map(card.columns.map(({ name, kind }) => [name, kind]));
  options(byId("first"), names);
  others(names);
  byId("first").onchange = () => others(names);
  compare();
}

/** Beside a column, any other. */
function others(names) {
  const [first, second] = [byId("first").value, byId("second").value];
  options(byId("second"), [["", "no other"], ...names.filter(([name]) => name !== first)], second);
}

// Of a marginal that is chosen while another is fetched, the other is given up.
const compare = latest(guarded(async (signal) => {
  const [first, second] = [byId("first").value, byId("second").value];
  const names = second ? [first, second] : [first];
  const found = await get(`${path}/marginal?columns=${names.map(encodeURIComponent).join(",")}`, { signal });
  const [outer, inner = [null]] = found.labels;
  const rows = found.values.map((value, place) => {
    const [one, other] = [outer[Math.floor(place / inner.length)], inner[place % inner.length]];
    const known = found.known?.value[place] ?? null;
    const error = found.known?.value_error[place] ?? null;
    const ends = known === null || error === null ? {} : { low: known - error, high: known + error };
    const group = other === null ? one : `${one} · ${other}`;
    return { group, first: one, second: other, value, error: found.errors[place], known, known_error: error, ...ends };
  });
  const title = names.join(" and ");
  const long = !second && rows.length > MANY_BARS && IN_ORDER.includes(kinds.get(first));
  byId("compare-words").textContent = words(rows, long);
  await draw(byId("compare"), long ? inOrder(rows, title)
    : second && rows.length > MOST_BARS ? heat(rows, { first, second, measure: "rows" }) : beside(rows, { title }));
}, "compare-words"), 0);

function inOrder(rows, title) {
  const numeric = rows.every((row) => Number.isFinite(Number(row.group)));
  const placed = numeric ? rows.map((row) => ({ ...row, group: Number(row.group) })) : rows;
  return line(placed, { title, measure: "rows", numeric, known: true });
}

function words(rows, long) {
  const beside = rows.filter((row) => row.known !== null && row.known_error !== null);
  const release = long ? "The line is the release" : "Bars are the release";
  if (!beside.length) return `${release}. Nothing is known of all these cells by itself.`;
  const within = beside.filter((row) => Math.abs(row.value - row.known) <= row.known_error).length;
  return `${release}; ${long ? "the band is" : "dots are"} what is known, with its error. \
The release is within the error in ${count(within)} of ${count(beside.length)} cells.`;
}

for (const id of ["first", "second"]) byId(id).addEventListener("change", compare);
