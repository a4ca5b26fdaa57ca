// Release: choose what it is for, see what each method would do, make it, and watch.

import { get, latest, newKey, post, role, tablePath } from "./api.js";
import { button, byId, el, guarded, note, tableOf, toast } from "./dom.js";
import { bytes, digits, percent, roundedDown, sentence, when } from "./format.js";
import { showRelease } from "./compare.js";

const PATH = `${tablePath()}/releases`;
const POLL = 400;
let left = 0;
let method = "auto";

const chosen = () => [...document.querySelectorAll("#columns input:checked")].map((input) => input.value);
const ways = () => Number(document.querySelector("input[name=ways]:checked").value);
const workload = () => ({ marginals: Math.min(ways(), chosen().length), of: chosen() });
const epsilon = () => Number(byId("epsilon").value);

function columnChecks(columns) {
  const check = (name) => el("input", { type: "checkbox", value: name, onchange: () => plan() });
  const size = (cells) => el("span", { class: "note" }, digits(cells));
  byId("columns").replaceChildren(...columns.map(({ name, cells }) => el("label", {}, check(name), name, size(cells))));
}

const plan = latest(guarded(async (signal) => {
  byId("make").disabled = true;
  if (!chosen().length) {
    byId("plan").replaceChildren(note("Choose columns to see what each method would do."));
    byId("goal").textContent = "";
    return;
  }
  if (!(epsilon() > 0)) throw new Error("Say what the release may cost: an epsilon above 0.");
  byId("plan").classList.add("busy");
  try {
    const found = await post(`${PATH}/plan`, { workload: workload(), epsilon: epsilon() }, { signal });
    showPlan(found);
  } finally {
    byId("plan").classList.remove("busy");
  }
}, "problem"), 300);

function showPlan(found) {
  const possible = found.forecasts.filter((row) => row.possible);
  if (!possible.some((row) => row.method === method)) method = "auto";
  const best = possible[0]?.method;
  const choose = (row) => {
    const facts = { type: "radio", name: "method", value: row.method, checked: row.method === method };
    const radio = el("input", { ...facts, onchange: () => (method = row.method) });
    return el("label", { class: "row" }, radio, row.title ?? row.method);
  };
  const rows = [...(best ? [{ ...possible[0], method: "auto", title: `the best of them: ${best}` }] : []), ...possible];
  const columns = [
    { title: "Method", head: true, of: choose },
    { title: "Expected error", class: "right", of: (row) => percent(row.error) },
    { title: "Seconds", class: "right", of: (row) => digits(row.seconds, 2) },
    { title: "Memory", class: "right", of: (row) => bytes(row.memory) },
  ];
  const without = found.forecasts.filter((row) => !row.possible);
  byId("plan").replaceChildren(
    tableOf(columns, rows, "What each method would do"),
    note("The error is the mean distance of a marginal from the truth, as a share of all rows."),
    without.length ? reasons(without) : "");
  byId("goal").textContent = `${sentence(found.goal)}, for epsilon ${digits(epsilon())} of ${digits(roundedDown(left))} left.`;
  byId("make").disabled = !best;
}

function reasons(rows) {
  const names = rows.map((row) => row.method).join(", ");
  const why = rows.map((row) => el("li", { class: "note" }, `${row.method}: ${row.why_not}`));
  return el("details", {}, el("summary", { class: "note" }, `Not for this: ${names}`), el("ul", {}, why));
}

async function make() {
  byId("make").disabled = true;
  try {
    const job = await post(PATH, { workload: workload(), epsilon: epsilon(), method }, { key: newKey() });
    await watch(job);
  } finally {
    byId("make").disabled = false;
  }
}

async function watch(job) {
  const bar = byId("bar");
  byId("progress").hidden = false;
  byId("progress").scrollIntoView({ block: "nearest" });
  while (job.state === "waiting" || job.state === "running") {
    bar.value = job.progress;
    const done = `Making ${job.describe}: ${Math.round(100 * job.progress)} %`;
    byId("bar-words").textContent = job.state === "waiting" ? "Waiting for its turn…" : done;
    await new Promise((done) => setTimeout(done, POLL));
    job = await get(`${PATH}/${job.id}`);
  }
  bar.value = 1;
  byId("progress").hidden = true;
  await Promise.all([list(), budget()]);
  if (job.state === "failed") throw new Error(job.problem?.detail ?? "The release failed.");
  toast("The release is made");
  await showRelease(job);
  byId("one-title").focus();
  plan();
}

async function list() {
  const jobs = await get(PATH);
  const open = (job) =>
    button("Open", guarded(() => opened(job)), { "aria-label": `Open the release of ${when(job.made)}` });
  const state = (job) =>
    (job.state === "failed" ? el("span", { class: "warning" }, job.problem?.detail ?? "failed") : job.state);
  const columns = [
    { title: "Made", class: "tight", of: (job) => when(job.made) },
    { title: "What", of: (job) => job.describe },
    { title: "By", of: (job) => job.analyst },
    { title: "Epsilon", class: "right", of: (job) => digits(job.epsilon) },
    { title: "State", of: state },
    { title: "Open", quiet: true, of: (job) => (job.state === "done" ? open(job) : "") },
  ];
  const found = jobs.length ? tableOf(columns, jobs, "Releases, the newest first", "stack") : note("None yet.");
  byId("list").replaceChildren(found);
  return jobs;
}

async function opened(job) {
  await showRelease(job);
  byId("one").scrollIntoView({ behavior: "smooth", block: "start" });
  byId("one-title").focus({ preventScroll: true });
}

async function budget() {
  const facts = await get(tablePath());
  left = facts.remaining.epsilon;
  if (role !== "auditor") byId("of-left").textContent = `of ${digits(roundedDown(left))} left`;
  return facts;
}

function choose(share) {
  byId("epsilon").value = roundedDown(left * share, 2);
}

async function begin() {
  if (role !== "auditor") {
    const facts = await budget();
    columnChecks(facts.columns);
    // What a person typed meanwhile stays.
    if (!(epsilon() > 0)) choose(left > 1 ? 0.5 / left : 0.5);
    byId("slider").value = (100 * epsilon()) / (left || 1);
  }
  const jobs = await list();
  const going = jobs.find((job) => job.state === "waiting" || job.state === "running");
  if (going && role !== "auditor") await watch(going);
}

if (role !== "auditor") {
  byId("slider").addEventListener("input", () => { choose(byId("slider").value / 100); plan(); });
  byId("epsilon").addEventListener("input", () => { byId("slider").value = (100 * epsilon()) / (left || 1); plan(); });
  for (const each of document.getElementsByName("ways")) each.addEventListener("change", () => plan());
  for (const [id, all] of [["all", true], ["none", false]]) {
    byId(id).addEventListener("click", () => {
      for (const input of document.querySelectorAll("#columns input")) input.checked = all;
      plan();
    });
  }
  byId("make").addEventListener("click", guarded(make, "problem"));
}
guarded(begin)();
