// Accounts, for the budget and for the owner: what may be spent, what was, what is set aside, what is left.

import { tableOf } from "./dom.js";
import { count, digits, errorText, percent } from "./format.js";

/** The table of some accounts; counts are those with the error `error`. */
export function accountsTable(accounts, error) {
  const columns = [
    { title: "Account", head: true, of: (one) => one.scope },
    { title: "May spend ε", class: "right", of: (one) => digits(one.cap.epsilon) },
    { title: "Delta", class: "right", of: (one) => digits(one.cap.delta) },
    { title: "Spent ε", class: "right", of: (one) => digits(one.spent.epsilon) },
    { title: "Set aside ε", class: "right", of: (one) => digits(one.held.epsilon) },
    { title: "Left ε", class: "right", of: (one) => digits(one.remaining.epsilon) },
    { title: "Share left", class: "right", of: (one) => percent(one.share_left) },
    { title: `Counts at ± ${errorText(error)}`, class: "right", of: (one) => count(one.counts_left) },
  ];
  return tableOf(columns, accounts, "Accounts", "stack");
}
