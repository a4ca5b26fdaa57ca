"""Questions of every kind, grown from the grammar: as JSON, and as SQL of the same tree."""

from math import prod

from query.rowwise import EXTRA, INSIDE, SHOWN

VALUES = {
    "h": [-1, 0, 1, 2, 0, 1, 1.0, 0.5, -7, 9, "missing", {"number": "1/2"}],
    "a": ["x", "y", "x", "y", "other", "missing"],
    "b": [True, False, 1, 0, "missing"],
    "g": [0, 5, 10, 20, 4, 9, 4.5, 25, -3, "0 to 4", "5 to 9", "10 to 20", "missing"],
    "o": ["lo", "mid", "hi"],
}
# A table is asked as it is, or as a crowd of so many of each row.
CROWD = 200
ORDERED = ("h", "g", "o")


def atom(random, names):
    name = random.choice(names)
    kind = random.randrange(10)
    if kind == 0 and "missing" in EXTRA[name]:
        return {"column": name, "missing": True}
    if kind <= 2:
        return {"column": name, "in": random.sample(VALUES[name], random.choice([0, 1, 1, 2, 2, 3]))}
    equal = ["==", "!=", "=", "<>"]
    operators = equal + ["<", "<=", ">", ">="] * 2 if name in ORDERED else equal
    return {"column": name, "is": random.choice(operators), "value": random.choice(VALUES[name])}


def condition(random, names, depth=3):
    kind = random.randrange(8) if depth else 0
    if kind <= 3:
        return atom(random, names) if random.random() < 0.98 else {"everyone": True}
    if kind <= 5:
        return {"not": condition(random, names, depth - 1)}
    parts = [condition(random, names, depth - 1) for _ in range(random.choice([1, 2, 2, 3]))]
    return {random.choice(["and", "or"]): parts}


def products(random, names):
    found = []
    for _ in range(random.choice([1, 1, 1, 2, 2, 3])):
        tables = []
        for _ in range(random.choice([0, 1, 1, 2])):
            # In any order, now and then one column twice.
            own = [random.choice(names) for _ in range(random.choice([1, 1, 2, 3]))]
            own = own if random.random() < 0.1 else list(dict.fromkeys(own))
            shape = [len(SHOWN[name]) for name in own]
            palette = random.choice([[0, 1], [0, 1], [0, 1, 1, 2, -1], [0, 1, 2**31, -(2**31)]])
            tables.append([own, shape, [random.choice(palette) for _ in range(prod(shape))]])
        found.append([random.choice([1, 1, 1, -1, 2, 3]), tables])
    return found


def subset(random, names, most=2):
    return random.sample(names, random.randint(1, min(most, len(names))))


def statement(random, names):
    aggregates = ["count", {"count": None, "as": "n"}, {"count": random.choice(names)}]
    if "h" in names:
        aggregates += [{"sum": "h"}, {"avg": "h"}, {"sum": "h", "as": "s"}, {"avg": "h", "as": "m"}]
    body = {"select": random.sample(aggregates, random.choice([1, 1, 2, 2, 3]))}
    if random.random() < 0.5:
        body["where"] = condition(random, names, 2)
    numbers = [
        each if isinstance(each, str) else each.get("as") or "_".join(next(iter(each.items())))
        for each in body["select"]
    ]
    group = []
    if random.random() < 0.75:
        group = body["group_by"] = subset(random, names)
        style = random.random()
        if style < 0.3:
            shown = random.sample(group, random.randint(1, len(group)))
            place = random.randint(0, len(body["select"]))
            body["select"][place:place] = [
                {"group": n} | ({"as": f"{n}2"} if random.random() < 0.2 else {}) for n in shown
            ]
        elif style < 0.4:
            body["show_groups"] = False
    if random.random() < 0.45:
        body["having"] = having(random, numbers, group)
    if random.random() < 0.35:
        pool = [*numbers, *group]
        body["order_by"] = [
            random.choice([n, {"name": n}, {"name": n, "descending": random.random() < 0.7}])
            for n in random.sample(pool, random.randint(1, len(pool)))
        ]
    if random.random() < 0.2:
        body["limit"] = random.choice([0, 1, 2, 3, 5, 100])
    return body


def having(random, numbers, group, depth=1):
    if depth and random.random() < 0.4:
        parts = [having(random, numbers, group, 0) for _ in range(2)]
        return random.choice([{"not": parts[0]}, {"and": parts}, {"or": parts}])
    if group and random.random() < 0.35:
        return atom(random, group)
    value = random.choice([0.5, 1.5, 2.5, 0, -0.5]) * random.choice([1, CROWD, CROWD])
    return {"column": random.choice(numbers), "is": random.choice(["<", "<=", ">", ">=", "!="]), "value": value}


def body(random, names):
    """A question as JSON."""
    kind = random.randrange(12)
    if kind <= 2:
        return {"where": condition(random, names)}
    if kind <= 7:
        return statement(random, names)
    if kind <= 8:
        return {"products": products(random, names)}
    if kind <= 9:
        return {
            "numerator": {"products": products(random, names)},
            "denominator": {"products": products(random, names)},
        }
    weight = {} if random.random() < 0.5 else {"weight": products(random, names)}
    return {"columns": random.sample(names, random.randint(0, len(names)))} | weight


# SQL.


def literal(value):
    if isinstance(value, bool):
        return str(value).upper()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


def sql_condition(tree, random):
    """The text of a condition; of one meaning there are many texts."""
    match tree:
        case {"and": parts} | {"or": parts}:
            word = " AND " if "and" in tree else " OR "
            return "(" + word.join(sql_condition(part, random) for part in parts) + ")"
        case {"not": {"column": name, "in": values}} if random.random() < 0.5:
            return f"{name} NOT IN ({', '.join(map(literal, values))})"
        case {"not": {"column": name, "missing": True}} if random.random() < 0.5:
            return f"{name} IS NOT NULL"
        case {"not": part}:
            return f"NOT {sql_condition(part, random)}" if "column" in part else f"NOT ({sql_condition(part, random)})"
        case {"is_true": {"column": name}, "wanted": wanted}:
            return f"{name} IS {str(wanted).upper()}"
        case {"column": name, "missing": True}:
            return f"{name} IS NULL"
        case {"column": name, "in": values}:
            return f"{name} IN ({', '.join(map(literal, values))})"
        case {"column": name, "is": operator, "value": value}:
            operator = {"==": "=", "!=": "<>"}.get(operator, operator)
            if (operator, value) == ("=", True) and random.random() < 0.5:
                return name
            if random.random() < 0.2:
                return f"{literal(value)} {FLIPPED[operator]} {name}"
            return f"{name} {operator} {literal(value)}"
    raise ValueError(tree)


def speakable(tree, random, names):
    """The tree with what JSON alone can say replaced, and now and then something that SQL alone can say."""
    if isinstance(tree, list):
        return [speakable(each, random, names) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if "everyone" in tree or tree.get("in") == []:
        return (
            {"column": names[0], "in": [SHOWN[names[0]][0]]}
            if names[0] != "g"
            else {"column": "g", "is": ">=", "value": 5}
        )
    if "column" in tree:
        if tree["column"] == "b" and random.random() < 0.2:
            wanted = {"is_true": {"column": "b", "is": "=", "value": True}, "wanted": random.random() < 0.5}
            return random.choice([wanted, {"not": wanted}])
        if tree["column"] in ("h", "g") and random.random() < 0.1:
            low, high = random.choice([(0, 1), (1, 0), (-1, 2)] if tree["column"] == "h" else [(0, 9), (5, 20), (5, 4)])
            return {
                "and": [
                    {"column": tree["column"], "is": ">=", "value": low},
                    {"column": tree["column"], "is": "<=", "value": high},
                ]
            }
        values = [tree["value"]] if "value" in tree else tree.get("in", [])
        if any(isinstance(value, dict) for value in values):
            return (
                {"column": "h", "is": ">", "value": 0.5}
                if tree["column"] == "h"
                else {"column": tree["column"], "missing": True}
            )
        return tree
    return {key: speakable(value, random, names) for key, value in tree.items()}


def sql(random, names):
    """A statement as text, and the tree of it."""
    tree = statement(random, names)
    tree.pop("show_groups", None)
    for part in ("where", "having"):
        if part in tree:
            tree[part] = speakable(tree[part], random, list(names) if part == "where" else ["h"])
    items, own = [], {}
    groups = tree.get("group_by", [])
    if not any(isinstance(item, dict) and "group" in item for item in tree["select"]):
        tree["select"] = [*({"group": name} for name in groups), *tree["select"]]
    for item in tree["select"]:
        if item == "count":
            items.append(random.choice(["COUNT(*)", "count(1)"]))
            continue
        ((kind, column),) = ((key, value) for key, value in item.items() if key != "as")
        text = column if kind == "group" else f"{kind.upper()}({column or '*'})"
        items.append(text + (f" AS {item['as']}" if "as" in item else ""))
        own[item.get("as")] = column
    text = f"SELECT {', '.join(items)} FROM data"
    if "where" in tree:
        text += f" WHERE {sql_condition(tree['where'], random)}"
    if groups:
        text += f" GROUP BY {', '.join(groups)}"
    if "having" in tree:
        text += f" HAVING {sql_condition(tree['having'], random)}"
    if "order_by" in tree:
        orders = [each if isinstance(each, dict) else {"name": each} for each in tree["order_by"]]
        text += " ORDER BY " + ", ".join(
            o["name"] + random.choice([" DESC"] if o.get("descending") else ["", " ASC"]) for o in orders
        )
    return text + (f" LIMIT {tree['limit']}" if "limit" in tree else ""), tree


assert set(VALUES) == set(SHOWN) == set(INSIDE)
