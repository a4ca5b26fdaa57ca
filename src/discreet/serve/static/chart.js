// Charts in the colours of the page. What draws them is loaded when the first one is wanted.

import { note } from "./dom.js";

// How Vega writes numbers.
const PLAIN = ",~r";
// A heat map with more lines than this lies down, if it can.
const MANY_DOWN = 12;

let loading;
const drawn = new Map();
const turns = new WeakMap();

function loaded() {
  loading ??= import(document.body.dataset.vega).then(() => window.vegaEmbed);
  loading.catch(() => (loading = undefined));
  return loading;
}

/** A chart will come soon: begin to load what draws it. */
export const expectChart = () => void loaded().catch(() => {});

function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "muted", "line", "grid", "card", "ours", "second", "third", "field"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function theme(colour) {
  const font = getComputedStyle(document.body).fontFamily;
  const colours = { labelColor: colour.muted, titleColor: colour.muted };
  const words = { ...colours, labelFontSize: 12.5, titleFontSize: 12.5, titleFontWeight: 500 };
  return {
    background: "transparent",
    font,
    view: { stroke: null },
    axis: { ...words, gridColor: colour.grid, domainColor: colour.line, tickColor: colour.line, labelLimit: 190 },
    legend: words,
    text: { color: colour.ink, font },
  };
}

/** Draw what `spec` makes of the colours, now and whenever the colours change. */
export async function draw(place, spec) {
  drawn.set(place, spec);
  place.classList.add("waiting");
  place.setAttribute("aria-busy", "true");
  if (!place.firstChild) place.append(note("Drawing…"));
  // One at a time: of two that are drawn at once, the older may come last.
  const turn = (turns.get(place) ?? Promise.resolve()).then(() => embedded(place, spec));
  turns.set(place, turn);
  await turn;
}

async function embedded(place, spec) {
  try {
    const embed = await loaded();
    if (drawn.get(place) !== spec) return;
    const colour = colours();
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const autosize = { type: "fit-x", contains: "padding" };
    const whole = { width: "container", autosize, ...spec(colour), config: theme(colour) };
    const tooltip = { theme: dark ? "dark" : "light" };
    // The interpreter: a page that forbids eval cannot compile expressions.
    const plain = { actions: false, defaultStyle: false, tooltip };
    await embed(place, whole, { mode: "vega-lite", ast: true, renderer: "svg", ...plain });
  } catch (error) {
    console.warn(error);
    place.replaceChildren(note("The chart cannot be drawn now."));
  }
  place.classList.remove("waiting");
  place.removeAttribute("aria-busy");
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const [place, spec] of drawn) {
    if (place.isConnected) draw(place, spec);
    else drawn.delete(place);
  }
});

// A field name may hold dots and brackets, which Vega would read as a path: charts know only these names.
const NUMBERS = ["value", "error", "known", "known_error"];
const BESIDE = { value: "release", known: "known", known_error: "known to ±" };
const tips = (titles) => Object.entries(titles).map(([field, title]) =>
  ({ field, title, ...(NUMBERS.includes(field) ? { format: ",.4~r", type: "quantitative" } : { type: "nominal" }) }));

/** Horizontal bars with error bars. Rows have group, value, low, high, error. */
export function bars(found, { title, measure, sorted }) {
  const rows = sorted ? [...found].sort((one, other) => other.value - one.value) : found;
  const sure = rows.some((row) => row.error !== undefined);
  return (colour) => ({
    description: `${measure} by ${title}${sure ? ", with error bars" : ""}`,
    data: { values: rows },
    height: tall(rows.length, 23),
    encoding: {
      y: { field: "group", type: "nominal", title: null, sort: null },
      tooltip: tips(sure ? { group: title, value: measure, error: "±" } : { group: title, value: measure }),
    },
    layer: [bar(colour, rows, measure), ...(sure ? [whiskers(colour), ...ends(colour)] : [])],
  });
}

/** More values than this that are in order are a line, and no bars. */
export const MANY_BARS = 24;

/** A line with a band: many values that are in order, with their errors; or a release, beside what is known. */
export function line(rows, { title, measure, numeric, known = false }) {
  const numbers = known ? BESIDE : { value: measure, error: "±" };
  return (colour) => ({
    description: `${measure} by ${title}, with a band for ${known ? "what is known" : "the error"}`,
    data: { values: rows },
    height: 260,
    encoding: {
      x: { field: "group", title, sort: null, axis: { grid: false, labelOverlap: true },
        ...(numeric ? { type: "quantitative", scale: { zero: false, nice: false } } : { type: "ordinal" }) },
      tooltip: tips({ group: title, ...numbers }),
    },
    layer: [
      { mark: { type: "area", color: colour.second, opacity: 0.28 },
        encoding: {
          y: { field: "low", type: "quantitative", title: measure, axis: { format: PLAIN } }, y2: { field: "high" } } },
      { mark: { type: "line", color: colour.ours, strokeWidth: 2.2, point: { size: 26, color: colour.ours } },
        encoding: { y: { field: "value", type: "quantitative" } } },
    ],
  });
}

/** A heat map of two columns. Rows have first, second, value, error. */
export function heat(rows, { first, second, measure }) {
  const [down, across] = ["first", "second"].map((name) => new Set(rows.map((row) => row[name])).size);
  if (down > across && down > MANY_DOWN) {
    const turned = rows.map((row) => ({ ...row, first: row.second, second: row.first }));
    return heat(turned, { first: second, second: first, measure });
  }
  const written = rows.length <= 200 && across <= 10;
  const long = across * Math.max(...rows.map((row) => row.second.length)) > 75;
  const dark = `datum.value > ${largest(rows) * 0.55}`;
  const legible = (colour) => ({ condition: { test: dark, value: colour.card }, value: colour.ink });
  return (colour) => ({
    description: `${measure} by ${first} and ${second}`,
    data: { values: rows },
    height: tall(down, 27),
    encoding: {
      x: { field: "second", type: "nominal", title: second, sort: null,
        axis: { labelAngle: long ? -32 : 0, labelOverlap: across > 30, labelLimit: 130 } },
      y: { field: "first", type: "nominal", title: first, sort: null },
      tooltip: tips({ first, second, value: measure, error: "±" }),
    },
    layer: [
      { mark: { type: "rect", stroke: colour.card, strokeWidth: 1 },
        encoding: { color: { field: "value", type: "quantitative", title: measure,
          scale: { range: [colour.field, colour.ours], domain: [0, largest(rows) || 1], clamp: true },
          legend: written ? null : { format: PLAIN } } } },
      ...(written ? [{ mark: { type: "text", fontSize: 11.5 },
        encoding: { text: { field: "value", type: "quantitative", format: ",.3~s" }, color: legible(colour) } }] : []),
    ],
  });
}

/** Bars of a release, beside what is known with its error. Rows have group, value, known, low, high. */
export function beside(rows, { title }) {
  return (colour) => ({
    description: `The release by ${title}, beside what is known`,
    data: { values: rows },
    height: tall(rows.length, 24),
    encoding: {
      y: { field: "group", type: "nominal", title: null, sort: null },
      tooltip: tips({ group: title, ...BESIDE }),
    },
    layer: [
      bar(colour, rows, "rows"), whiskers(colour),
      { mark: { type: "point", filled: true, color: colour.second, size: 42, opacity: 1 },
        encoding: { x: { field: "known", type: "quantitative" } } },
    ],
  });
}

/** Steps that only go up: what was spent over time. Rows have at, value. */
export function steps(rows, { measure, format }) {
  const axis = { grid: false, labelOverlap: true, tickCount: 6 };
  // Between one moment and itself Vega would count milliseconds.
  if (rows.length === 1) axis.format = "%d %b %H:%M";
  return (colour) => ({
    description: `${measure} over time`,
    data: { values: rows },
    height: 210,
    encoding: {
      x: { field: "at", type: "temporal", title: null, axis },
      y: { field: "value", type: "quantitative", title: measure, axis: { format } },
    },
    layer: [
      { mark: { type: "area", interpolate: "step-after", color: colour.ours, opacity: 0.14 } },
      { mark: { type: "line", interpolate: "step-after", color: colour.ours, strokeWidth: 2.2 } },
      { mark: { type: "point", filled: true, color: colour.ours, size: 34 },
        encoding: { tooltip: [
          { field: "at", type: "temporal", title: "when", format: "%d %b %H:%M" },
          { field: "value", type: "quantitative", title: measure, format }] } },
    ],
  });
}

const bar = (colour, rows, measure) => ({
  mark: { type: "bar", color: colour.ours, opacity: 0.62, cornerRadiusEnd: 3, height: { band: 0.74 } },
  encoding: { x: { field: "value", type: "quantitative", title: measure,
    scale: { domain: reach(rows), nice: false }, axis: { format: PLAIN, tickCount: 6 } } },
});
const whiskers = (colour) => ({
  mark: { type: "rule", color: colour.second, strokeWidth: 2.4 },
  encoding: { x: { field: "low", type: "quantitative" }, x2: { field: "high" } },
});
const ends = (colour) => ["low", "high"].map((field) => ({
  mark: { type: "tick", color: colour.second, thickness: 2, size: 9 },
  encoding: { x: { field, type: "quantitative" } },
}));

/** From zero, or from what may be below it, to the end of the longest error bar. */
function reach(rows) {
  const low = rows.reduce((least, row) => Math.min(least, row.value, row.low ?? 0), 0);
  const high = rows.reduce((most, row) => Math.max(most, row.value, row.high ?? 0), 0) || 1;
  return [low * 1.04, high * 1.02];
}

const tall = (lines, each) => Math.round(lines * (lines > 30 ? 17 : each));

const largest = (rows) => rows.reduce((most, row) => Math.max(most, row.value), 0);
