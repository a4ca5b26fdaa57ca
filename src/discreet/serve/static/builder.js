// A question for people who do not write SQL: it writes the SQL, so that they learn it.

import { button, el, options } from "./dom.js";
import { label } from "./format.js";
import { statement } from "./sql.js";

const WHAT = [["count", "how many rows"], ["sum", "the sum of"], ["avg", "the average of"]];
const ORDERED = [["in", "is one of"], ["not in", "is none of"], [">=", "at least"], ["<=", "at most"]];
const NUMBERS = [[">=", "at least"], ["<=", "at most"], ["=", "equals"], ["between", "between"]];
const CHOICES = [["in", "is one of"], ["not in", "is none of"]];

export class Builder {
  constructor(place, table, columns, wrote) {
    Object.assign(this, { place, table, columns, wrote });
    this.conditions = [];
    this.what = this.choice("What to ask for", WHAT);
    const numbers = columns.filter((column) => column.numeric).map(({ name }) => [name, name]);
    this.of = this.choice("Of column", numbers);
    const names = [["", "nothing"], ...columns.map(({ name }) => [name, name])];
    this.groups = [this.choice("For each value of", names), this.choice("and of", names)];
    this.list = el("div", {});
    const field = (title, ...inputs) => el("label", { class: "field" }, title, ...inputs);
    place.replaceChildren(
      el("div", { class: "wish" }, field("Ask for", this.what), field("of", this.of)),
      this.list,
      button("+ Add a condition", () => this.add(), { class: "quiet" }),
      el("div", { class: "wish" }, field("For each value of", this.groups[0]), field("and of", this.groups[1])));
    if (!numbers.length) for (const one of [...this.what.options].slice(1)) one.disabled = true;
    this.settle();
  }

  choice(name, choices) {
    const select = el("select", { "aria-label": name, onchange: () => this.write() });
    options(select, choices);
    return select;
  }

  settle() {
    this.of.closest("label").hidden = this.what.value === "count";
    this.groups[1].closest("label").hidden = !this.groups[0].value;
  }

  /** One more condition: a column, a comparison, and values. */
  add() {
    const row = el("fieldset", { class: "condition" }, el("legend", { class: "hidden" }, "Condition"));
    const condition = { row, values: [] };
    condition.column = this.choice("Column", this.columns.map(({ name }) => [name, name]));
    condition.is = this.choice("Comparison", []);
    condition.inputs = el("span", { class: "row" });
    condition.column.addEventListener("change", () => this.compare(condition));
    condition.is.addEventListener("change", () => this.ask(condition));
    const gone = () => {
      this.conditions = this.conditions.filter((each) => each !== condition);
      row.remove();
      this.write();
    };
    const remove = button("✕", gone, { class: "quiet", "aria-label": "Remove the condition" });
    row.append(condition.column, condition.is, remove, condition.inputs);
    this.conditions.push(condition);
    this.list.append(row);
    this.compare(condition);
    condition.column.focus();
  }

  columnOf(condition) { return this.columns.find(({ name }) => name === condition.column.value); }

  compare(condition) {
    const column = this.columnOf(condition);
    options(condition.is, column.numeric ? NUMBERS : column.kind === "ordered categories" ? ORDERED : CHOICES);
    this.ask(condition);
  }

  /** Show the inputs that a comparison needs. */
  ask(condition) {
    const column = this.columnOf(condition);
    const is = condition.is.value;
    condition.values = [];
    const set = (place, value) => {
      condition.values[place] = value;
      this.write();
    };
    let inputs;
    if (column.numeric) {
      const starts = is === "between" ? [column.lower, column.upper] : [is === "<=" ? column.upper : column.lower];
      condition.values = [...starts];
      inputs = starts.map((value, place) => el("input", {
        type: "number", "aria-label": place ? "Largest value" : "Value", min: column.lower, max: column.upper, value,
        oninput: (event) => set(place, event.target.value === "" ? "" : Number(event.target.value)),
      }));
    } else if (is === "in" || is === "not in") {
      const check = (value, place) => (event) => set(place, event.target.checked ? value ?? "missing" : "");
      inputs = [el("span", { class: "checks" }, column.values.map((value, place) =>
        el("label", {}, el("input", { type: "checkbox", onchange: check(value, place) }), label(value))))];
    } else {
      const choices = column.values.map((value) => el("option", {}, label(value)));
      const select = el("select", { "aria-label": "Value" }, choices);
      select.addEventListener("change", () => set(0, column.values[select.selectedIndex]));
      condition.values = [column.values[0]];
      inputs = [select];
    }
    condition.inputs.replaceChildren(...inputs);
    this.write();
  }

  write() {
    this.settle();
    this.wrote(statement({
      table: this.table, what: this.what.value, of: this.of.value,
      conditions: this.conditions.map(({ column, is, values }) => ({ column: column.value, is: is.value, values })),
      groups: [...new Set(this.groups.map((one) => one.value).filter(Boolean))],
    }));
  }
}
