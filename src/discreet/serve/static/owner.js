// Owner: who may ask, how much may leak, and whether the ledger holds. An auditor sees the ledger and the tables.

import { accountsTable } from "./accounts.js";
import { call, get, post, role, tablePath } from "./api.js";
import { button, byId, copyButton, el, guarded, note, options, tableOf, toast } from "./dom.js";
import { count, digits, label, plural, vast, when } from "./format.js";

const isOwner = role === "owner";
// The error of the counts in the column that says how many more fit.
const ERROR = 200;

function state({ revoked, expires }) {
  if (revoked) return `revoked ${when(revoked)}`;
  if (!expires) return "no end";
  return `${new Date(expires) < new Date() ? "expired" : "until"} ${when(expires)}`;
}

async function showTokens() {
  const found = (await get("/tokens")).reverse();
  const rows = found.map((token) => ({ ...token, class: token.revoked ? "off" : null }));
  const columns = [
    { title: "Name", head: true, of: (token) => token.name },
    { title: "Role", of: (token) => token.role },
    { title: "Begins with", of: (token) => el("code", {}, `${token.prefix}…`) },
    { title: "Made", class: "tight", of: (token) => `${when(token.created)} by ${token.created_by}` },
    { title: "State", class: "tight", of: state },
    { title: "Revoke", quiet: true, of: (token) => (token.revoked ? "" : revokeButton(token)) },
  ];
  byId("tokens").replaceChildren(tableOf(columns, rows, "Tokens, the newest first", "stack"));
  const names = [...new Set(found.map(({ name }) => name))];
  options(byId("people"), [["*", "each analyst"], ...names.map((name) => [name, ""])]);
}

/** Revoking is for good, so it takes a second press. */
function revokeButton(token) {
  const what = `Revoke the token of ${token.name}`;
  const pressed = () => (press.dataset.sure ? sure() : ask());
  const press = button("Revoke", pressed, { class: "quiet danger", "aria-label": what });
  const sure = guarded(async () => {
    await call("DELETE", `/tokens/${token.prefix}`);
    toast(`The token of ${token.name} is revoked`);
    await showTokens();
  });
  const say = (text, name) => {
    press.textContent = text;
    press.setAttribute("aria-label", name);
  };
  const ask = () => {
    press.dataset.sure = "yes";
    say("Revoke for good?", `${what} for good?`);
    setTimeout(() => {
      delete press.dataset.sure;
      say("Revoke", what);
    }, 5000);
  };
  return press;
}

async function create() {
  const days = byId("days").value;
  const wanted = { name: byId("name").value.trim(), role: byId("role").value };
  const made = await post("/tokens", days ? { ...wanted, days: Number(days) } : wanted);
  byId("made").replaceChildren(
    el("p", {}, `The token of ${made.name}. It is shown only now: copy it, and give it by a safe way.`),
    el("div", { class: "copyable" }, el("code", { id: "new-token" }, made.token), copyButton(made.token, "Token"),
      copyButton(`${location.origin}/sign-in#${made.token}`, "Link to sign in", "Copy a link to sign in")));
  byId("made").hidden = false;
  byId("create").reset();
  await showTokens();
}

async function showAccounts() {
  const names = [...byId("cap-table").options].map((option) => option.value);
  const found = await Promise.all(names.map((name) => get(`${tablePath(name)}/budget?error=${ERROR}`)));
  const accounts = new Map(found.flatMap((one) => one.accounts).map((one) => [one.scope, one]));
  byId("accounts").replaceChildren(accountsTable([...accounts.values()], ERROR));
  // A cap has the delta of its table, unless the owner says otherwise.
  const deltas = new Map(names.map((name, place) => [name, found[place].cap.delta]));
  const suggest = () => (byId("cap-delta").value = deltas.get(byId("cap-table").value));
  if (!byId("cap-delta").value) suggest();
  byId("cap-table").onchange = suggest;
}

async function setCap() {
  const analyst = byId("cap-analyst").value.trim();
  const cap = { epsilon: Number(byId("cap-epsilon").value), delta: Number(byId("cap-delta").value) };
  const body = analyst ? { ...cap, analyst } : cap;
  const done = await call("PUT", `${tablePath(byId("cap-table").value)}/caps`, { body });
  toast(`${done.raised ? "Raised" : "Set"}: epsilon ${digits(done.cap.epsilon)} for ${done.scope}`);
  await showAccounts();
}

function showHead(head) {
  byId("head").replaceChildren(el("code", {}, head), copyButton(head, "Head"));
}

async function verify() {
  const press = byId("verify");
  press.disabled = true;
  byId("verified").textContent = "Reading every entry…";
  try {
    const found = await post("/ledger/verify");
    const more = found.holds ? ` ${plural(found.spends, "spend")}, ${count(found.answered)} of them answered.` : "";
    byId("verified").textContent = `${found.holds ? "✓" : "✗"} ${found.detail}${more}`;
    byId("verified").className = found.holds ? "free" : "warning";
    if (found.head) showHead(found.head);
  } catch (problem) {
    byId("verified").textContent = problem.message;
    byId("verified").className = "warning";
  } finally {
    press.disabled = false;
  }
}

async function showHolds() {
  const holds = await get("/ledger/holds");
  const give = guarded(async (hold) => {
    await call("DELETE", `/ledger/holds/${hold}`);
    toast("Given back");
    await Promise.all([showHolds(), showAccounts()]);
  });
  const back = ({ hold }) =>
    button("Give back", () => give(hold), { class: "quiet danger", "aria-label": `Give back hold ${hold}` });
  const columns = [
    { title: "Hold", head: true, of: (one) => count(one.hold) }, { title: "Table", of: (one) => one.table },
    { title: "Analyst", of: (one) => one.analyst }, ...(isOwner ? [{ title: "Give back", quiet: true, of: back }] : []),
  ];
  byId("holds").replaceChildren(holds.length ? tableOf(columns, holds, "Holds", "stack") : note("Nothing is set aside."));
}

async function showTables() {
  const names = (await get("/tables")).map(({ name }) => name);
  const found = await Promise.all(names.map((name) => get(tablePath(name))));
  byId("tables").replaceChildren(...found.map(tableDetails));
}

function tableDetails(facts) {
  const some = (values) => values.slice(0, 4).map(label).join(", ") + (values.length > 4 ? ", …" : "");
  const range = ({ numeric, lower, upper, values }) => (numeric ? `${label(lower)} to ${label(upper)}` : some(values));
  const size = `${count(facts.columns.length)} columns make ${vast(Number(facts.cells))} cells.`;
  const columns = [
    { title: "Column", head: true, of: (column) => column.name }, { title: "Kind", of: (column) => column.kind },
    { title: "Cells", class: "right", of: (column) => count(column.cells) }, { title: "Values", of: range },
    { title: "Outside", of: (column) => column.outside }, { title: "Missing", of: (column) => column.missing },
  ];
  return el("details", { open: true }, el("summary", {}, facts.name),
    note(`Protected: ${facts.protects}. ${size} The server has opened its rows, and every column is there.`),
    el("div", { class: "scroll" }, tableOf(columns, facts.columns, `Columns of ${facts.name}`, "stack")),
    el("details", {}, el("summary", { class: "note" }, "The schema as a file"), el("pre", {}, facts.schema)));
}

function submitting(form, work, problem) {
  byId(form).addEventListener("submit", (event) => {
    event.preventDefault();
    guarded(work, problem)();
  });
}

if (isOwner) {
  submitting("create", create, "create-problem");
  submitting("cap", setCap, "cap-problem");
  guarded(showTokens)();
  guarded(showAccounts)();
}
byId("verify").addEventListener("click", verify);
guarded(async () => showHead((await get("/ledger/head")).head))();
guarded(showHolds)();
guarded(showTables)();
