// The SQL that the builder writes.

export const named = (name) => (/^[a-z_][a-z0-9_]*$/i.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

export function literal(value) {
  if (typeof value === "number") return String(value);
  if (typeof value === "boolean") return value ? "TRUE" : "FALSE";
  return `'${String(value ?? "missing").replaceAll("'", "''")}'`;
}

/** A condition of the builder: {column, is, values}, where `is` is a comparison, "in", "not in" or "between". */
export function conditionText({ column, is, values }) {
  const given = values.filter((value) => value !== "" && value !== undefined);
  if (!given.length || (is === "between" && given.length < 2)) return null;
  const name = named(column);
  if (is === "between") return `${name} BETWEEN ${literal(given[0])} AND ${literal(given[1])}`;
  if (is === "in" && given.length === 1) return `${name} = ${literal(given[0])}`;
  if (is === "not in" && given.length === 1) return `${name} <> ${literal(given[0])}`;
  if (is === "in" || is === "not in") return `${name} ${is.toUpperCase()} (${given.map(literal).join(", ")})`;
  return `${name} ${is} ${literal(given[0])}`;
}

/** The whole statement. `what` is "count", or "sum" or "avg" of a column. */
export function statement({ table, what, of, conditions, groups }) {
  const aggregate = what === "count" || !of ? "COUNT(*)" : `${what.toUpperCase()}(${named(of)})`;
  const columns = groups.map(named);
  const where = conditions.map(conditionText).filter(Boolean);
  return [
    `SELECT ${[...columns, aggregate].join(", ")}`,
    `FROM ${named(table)}`,
    where.length ? `WHERE ${where.join(" AND ")}` : null,
    columns.length ? `GROUP BY ${columns.join(", ")}` : null,
  ].filter(Boolean).join("\n");
}

export const countBy = (table, columns) => statement({ table, what: "count", conditions: [], groups: columns });
