"""What a question means, row by row in plain Python: a second program that shares nothing with ours but the JSON.

A row is a dict of raw values. JSON conditions have two truth values and SQL has three (docs/queries.md, docs/sql.md);
here both come from one reading in which None is "unknown": JSON takes unknown for false at once, SQL at the end.
"""

from fractions import Fraction
from functools import partial
from itertools import product
from operator import eq, ge, gt, le, lt, ne

# What the cells of each column are shown as, and a raw value in each; extra cells come after the declared ones.
SHOWN = {
    "h": [-1, 0, 1, 2, None],
    "a": ["x", "y", "other", "missing"],
    "b": [False, True, None],
    "g": ["0 to 4", "5 to 9", "10 to 20", "missing"],
    "o": ["lo", "mid", "hi"],
}
RAW = {"h": [-1, 0, 1, 2, None], "a": ["x", "y", "z", None], "b": [False, True, None], "g": [0, 7, 20, None]}
RAW["o"] = SHOWN["o"]
INSIDE = {"h": 4, "a": 2, "b": 2, "g": 3, "o": 3}
EXTRA = {"h": ["missing"], "a": ["other", "missing"], "b": ["missing"], "g": ["missing"], "o": []}
OPERATORS = {"==": eq, "=": eq, "!=": ne, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


class Unsure(Exception):  # noqa: N818, nothing is wrong
    """The noise may decide: what is to be shown is not a matter of meaning."""


def code(name, raw):
    """The cell of a raw value; None if the row is dropped."""
    match name:
        case "h":
            return 4 if raw is None else min(max(raw, -1), 2) + 1
        case "a":
            return {"x": 0, "y": 1, None: 3}.get(raw, 2)
        case "b":
            return 2 if raw is None else int(raw is True)
        case "g":
            return 3 if raw is None else 0 if raw < 5 else 1 if raw < 10 else 2
        case "o":
            return SHOWN["o"].index(raw) if raw in SHOWN["o"] else None


def kept(rows):
    return [row for row in rows if all(code(name, raw) is not None for name, raw in row.items())]


def every_cell(names):
    """A row in each cell, the last column varying fastest."""
    return [dict(zip(names, raws, strict=True)) for raws in product(*(RAW[name] for name in names))]


# Conditions.


def compared(name, operator, value, row):
    """One comparison: True, False or None. A label names its cell; nothing else is known of an extra cell."""
    cell, extra = code(name, row[name]), EXTRA[name]
    if cell >= INSIDE[name]:
        own = extra[cell - INSIDE[name]] == value and type(value) is str
        return operator in ("==", "=") if own and OPERATORS[operator] in (eq, ne) else None
    if type(value) is str and value in extra:
        assert OPERATORS[operator] in (eq, ne), "an extra cell has no place in the order"
        return OPERATORS[operator] is ne
    match name:
        case "o":
            return OPERATORS[operator](cell, SHOWN["o"].index(value))
        case "a":
            assert value in ("x", "y"), "a value that the column does not have"
            return OPERATORS[operator](row["a"], value)
        case "b":
            assert number(value) in (0, 1)
            return OPERATORS[operator](row["b"] is True, number(value) == 1)
        case "g" if type(value) is str:
            return OPERATORS[operator](SHOWN["g"][cell], value)
    assert type(value) is not bool, "a truth value is no number"
    here = min(max(row[name], -1), 2) if name == "h" else min(max(row[name], 0), 20)
    return OPERATORS[operator](here, number(value))


def number(value):
    """A value of JSON as an exact number."""
    return Fraction(value["number"] if isinstance(value, dict) else value)


def of_row(atom, row):
    """An atom of a condition: True, False or None."""
    name = atom["column"]
    if "missing" in atom:
        assert "missing" in EXTRA[name]
        return SHOWN[name].index(SHOWN[name][-1]) == code(name, row[name])
    if "in" in atom:
        found = [compared(name, "==", value, row) for value in atom["in"]]
        known = code(name, row[name]) < INSIDE[name]
        return True if any(found) else False if known else None
    return compared(name, atom["is"], atom["value"], row)


def truth(condition, atom, *, sql):
    """Kleene's logic over atoms; without `sql` an unknown atom is false, so that NOT makes it true."""
    match condition:
        case {"and": parts}:
            found = [truth(part, atom, sql=sql) for part in parts]
            return False if False in found else None if None in found else True
        case {"or": parts}:
            found = [truth(part, atom, sql=sql) for part in parts]
            return True if True in found else None if None in found else False
        case {"not": part}:
            inner = truth(part, atom, sql=sql)
            return None if inner is None else not inner
        case {"everyone": _}:
            return True
        case {"is_true": part, "wanted": wanted}:
            return truth(part, atom, sql=sql) is wanted
    found = atom(condition)
    return found if sql else found is True


def chosen(rows, condition, *, sql):
    if condition is None:
        return rows
    return [row for row in rows if truth(condition, partial(of_row, row=row), sql=sql) is True]


# Numbers.


def aggregate(kind, column, rows):
    if column is None:
        return len(rows)
    inside = [row[column] for row in rows if code(column, row[column]) < INSIDE[column]]
    if kind == "count":
        return len(inside)
    assert column == "h", "only integers add up"
    total = sum(min(max(value, -1), 2) for value in inside)
    return total if kind == "sum" else Fraction(total, len(inside)) if inside else None


def weighed(products, row, end=0):
    """What one row adds to a sum of products. A column that is not there counts as its first cell, or its last."""
    found = 0
    for coefficient, tables in products:
        for columns, shape, weights in tables:
            place = 0
            for name, size in zip(columns, shape, strict=True):
                here = name in row and len(SHOWN[name]) == size
                place = place * size + (code(name, row[name]) if here else end % size)
            coefficient *= weights[place]
        found += coefficient
    return found


def total(products, rows):
    first, last = (sum(weighed(products, row, end) for row in rows) for end in (0, -1))
    assert first == last, "the query depends on a column that is not there"
    return first


def items_of(body):
    """(kind, column, name) of everything selected; groups come first unless they are named."""
    items = []
    for item in body["select"]:
        if item == "count":
            items.append(("count", None, "count"))
            continue
        ((kind, column),) = ((key, value) for key, value in item.items() if key != "as")
        default = column if kind == "group" else kind if column is None else f"{kind}_{column}"
        items.append((kind, column, item.get("as") or default))
    named = any(kind == "group" for kind, _, _ in items)
    if not named and body.get("show_groups") is not False:
        items = [("group", name, name) for name in body.get("group_by", [])] + items
    return items


def table(body, rows, *, sql=False):
    """All groups of a statement, before HAVING: (a row in the group's cell, {name: exact number})."""
    groups = body.get("group_by", [])
    rows = chosen(rows, body.get("where"), sql=sql)
    found = []
    for place in every_cell(groups):
        here = [row for row in rows if all(code(n, row[n]) == code(n, place[n]) for n in groups)]
        numbers = {name: aggregate(kind, col, here) for kind, col, name in items_of(body) if kind != "group"}
        found.append((place, numbers))
    return found


def meaning(body, rows):
    """The exact numbers of a question that is no statement, in order; a quotient as a pair."""
    if "where" in body:
        return [len(chosen(rows, body["where"], sql=False))]
    if "numerator" in body:
        return [tuple(total(body[part]["products"], rows) for part in ("numerator", "denominator"))]
    if "products" in body:
        return [total(body["products"], rows)]
    names, weight = body["columns"], body.get("weight")
    found = []
    for place in every_cell(names):
        here = [row for row in rows if all(code(n, row[n]) == code(n, place[n]) for n in names)]
        found.append(len(here) if weight is None else total(weight, here))
    return found


# What is shown of released numbers. `near(exact)` is how far a released number may be from the exact one.


def surely(operator, exact, near, value):
    """A comparison of a released number; Unsure if noise may decide."""
    if exact is None:
        raise Unsure
    low, high = (OPERATORS[operator](exact + side * near, number(value)) for side in (-1, 1))
    within = exact - near <= number(value) <= exact + near
    if low != high or (within and near):
        raise Unsure
    return low


def shown_rows(body, full, near, *, sql=False):
    """Rows after HAVING, in order, as classes of rows that noise may exchange; then how many of them are shown."""

    def holds(place, numbers):
        def atom(one):
            if one["column"] in place:
                return of_row(one, place)
            exact, reach = numbers[one["column"]], near(one["column"])
            if "in" in one:
                return True in [surely("==", exact, reach, value) for value in one["in"]]
            return surely(one["is"], exact, reach, one["value"])

        return "having" not in body or truth(body["having"], atom, sql=sql) is True

    rows = [(place, numbers) for place, numbers in full if holds(place, numbers)]
    own = {name: column for kind, column, name in items_of(body) if kind == "group"}
    orders = [{"name": each} if isinstance(each, str) else each for each in body.get("order_by", [])]
    # (rows, whether their order is settled): rows whose released numbers may be equal may come in any order.
    parts = [(rows, False)]
    for order in orders:
        name, down = own.get(order["name"], order["name"]), order.get("descending", False)
        noisy = not (rows and name in rows[0][0])
        cut = [(each, settled) if settled else None for each, settled in parts]
        parts = [
            whole
            for (each, _), done in zip(parts, cut, strict=True)
            for whole in (
                [done] if done else [(part, noisy and len(part) > 1) for part in sorted_parts(each, name, down, near)]
            )
        ]
    # Rows that are equal in all of it stay in the order of the cells.
    classes = [part for each, settled in parts for part in ([each] if settled else [[row] for row in each])]
    return classes, body.get("limit")


def sorted_parts(rows, name, down, near):
    """Rows sorted by one thing, in parts that are equal in it; of numbers, that may be."""
    if rows and name in rows[0][0]:
        cells = {id(row): code(name, row[0][name]) for row in rows}
        place = {
            key: (cell >= INSIDE[name], -cell if down and cell < INSIDE[name] else cell) for key, cell in cells.items()
        }
        return [[row for row in rows if place[id(row)] == key] for key in sorted(set(place.values()))]
    if any(numbers[name] is None for _, numbers in rows):
        raise Unsure
    parts = []
    for row in sorted(rows, key=lambda row: -row[1][name] if down else row[1][name]):
        if parts and abs(row[1][name] - parts[-1][-1][1][name]) <= 2 * near(name):
            parts[-1].append(row)
        else:
            parts.append([row])
    return parts
