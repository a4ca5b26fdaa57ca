"""The tables and figures of the benchmark of releases, from the rows of its runs."""

from statistics import median

import numpy as np

from machine import describe
from release_data import DRAWN, NAMES, WORKLOADS, sample

OURS = "discreet"


def report(rows, scores):
    """The page: errors, costs, rows, the plan, the classifier, and what failed."""
    tables = [name for name in NAMES if any(row["table"] == name for row in rows)]
    seeds = len({row["seed"] for row in rows})
    head = [
        "# Releases",
        "",
        f"{describe('scipy')}. bench/release.py: delta 1e-9, add_remove, {seeds} seeds (peers one). Each run is a "
        "process of its own; CPU seconds include compiling.",
        "",
        "laplace and gaussian: noise for every cell, projected on the simplex. independent: the product of noisy "
        "single columns, which say the number of rows too. aim: its paper's algorithm on our tree of cliques "
        "(bench/release_aim.py), with our budget. "
        "mbi-aim: the code of its authors on mbi 2.0.0. smartnoise: smartnoise-synth 1.0.8, which has rows only. "
        "The peers read epsilon and delta as concentrated DP, which leaves them a tenth less than Gaussian DP does.",
        "",
        *(described(name) for name in tables),
        "",
    ]
    parts = [
        *(part for name in WORKLOADS for part in errors(rows, name)),
        *costs(rows),
        *of_rows(rows),
        *beside_independent(rows),
        *estimates(rows),
        *plans(rows),
        *classifier(scores),
        *failures(rows),
    ]
    return "\n".join([*head, *parts])


def described(name):
    table = sample(name)
    sizes = table.sizes.values()
    what = (
        "drawn; tables of its kind were tuned on, and a few constants on this one"
        if name in DRAWN
        else "as others coded it"
    )
    return (
        f"- {name}: {table.rows:,} rows, {len(sizes)} columns of {min(sizes)} to {max(sizes)} values, {what} "
        f"(sha256 of its codes {table.checksum}…)"
    )


def titled(title, words, columns, lines):
    if not lines:
        return []
    return [f"## {title}", "", words, "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *lines, ""]


def spread(values):
    """The median, and the least and the largest."""
    if not values:
        return "–"
    if len(values) == 1:
        return f"{values[0]:.3g}"
    return f"{median(values):.3g} ({min(values):.3g}–{max(values):.3g})"


def error_of(row):
    """The error of the answers; of the rows, where a peer has only rows."""
    return row.get("error", row.get("error_of_rows"))


def methods_of(rows):
    """The methods in the order in which they were first seen, those that the plan lists last."""
    seen = dict.fromkeys(row["method"] for row in rows)
    return sorted(seen, key=lambda method: (":" in method, method != OURS))


def settings_of(rows):
    """Table and epsilon, in the order of the tables."""
    found = {(row["table"], row["epsilon"]) for row in rows if row["table"] in NAMES}
    return sorted(found, key=lambda each: (NAMES.index(each[0]), each[1]))


def errors(rows, workload):
    some = [row for row in rows if row["workload"] == workload and row["table"] in NAMES]
    some = [row for row in some if "told" not in row["method"]]
    methods = methods_of(some)
    lines = []
    for table, epsilon in settings_of(some):
        values = {
            method: [
                error_of(row)
                for row in some
                if (row["table"], row["epsilon"], row["method"]) == (table, epsilon, method)
                and error_of(row) is not None
            ]
            for method in methods
        }
        # The methods of the plan are ours as well, and would always share the best place.
        least = min((median(found) for method, found in values.items() if found and ":" not in method), default=None)
        cells = [
            f"**{spread(found)}**" if found and ":" not in method and median(found) == least else spread(found)
            for method, found in values.items()
        ]
        lines.append(f"| {table} | {epsilon:g} | {' | '.join(cells)} |")
    words = "Mean L1 error of a marginal as a share of the rows: median (least–largest) over the seeds."
    return titled(f"Error, {workload}", words, ["table", "ε", *methods], lines)


def costs(rows):
    """CPU seconds and memory at epsilon 1, beside ours as ratios."""
    some = [row for row in rows if row["epsilon"] == 1 and row["workload"] == "3-ways" and row["table"] in NAMES]
    some = [row for row in some if "told" not in row["method"]]
    # Noise for each cell is drawn when it is asked for: there is nothing to time.
    methods, lines = [each for each in methods_of(some) if each not in ("laplace", "gaussian")], []
    for table, _ in settings_of(some):
        here = {method: [row for row in some if (row["table"], row["method"]) == (table, method)] for method in methods}
        ours = [row["seconds"] for row in here.get(OURS, ()) if "seconds" in row]
        cells = []
        for found in here.values():
            seconds = [row.get("seconds", row.get("all_seconds")) for row in found]
            if not found or None in seconds:
                cells.append("–")
                continue
            above = "> " if any("seconds" not in row for row in found) else ""
            ratio = f" (× {median(seconds) / median(ours):.3g})" if ours and median(ours) > 0 else ""
            memory = median([row.get("megabytes", row.get("all_megabytes")) for row in found])
            cells.append(f"{above}{median(seconds):.3g} s{ratio}, {memory:.0f} MB")
        lines.append(f"| {table} | {' | '.join(cells)} |")
    words = "All 3-ways at ε = 1: CPU seconds of the release (as a multiple of ours), peak memory of the process."
    return titled("Cost", words, ["table", *methods], lines)


def of_rows(rows):
    """What drawing rows costs in error, and the worst cell."""
    some = [row for row in rows if row["method"] == OURS and row["workload"] == "3-ways" and "error_of_rows" in row]
    lines = []
    for table, epsilon in settings_of(some):
        here = [row for row in some if (row["table"], row["epsilon"]) == (table, epsilon)]
        cells = [
            spread([row[name] for row in here if name in row])
            for name in ("error", "error_of_rows", "cell", "cell_of_rows", "seconds", "drawing")
        ]
        lines.append(f"| {table} | {epsilon:g} | {' | '.join(cells)} |")
    columns = ["table", "ε", "error of answers", "of rows", "worst cell", "of rows", "release, CPU s", "rows, CPU s"]
    return titled("Rows", "As many synthetic rows as the table has. The worst cell as a share of n.", columns, lines)


def means(rows, method, table, epsilon):
    found = [error_of(row) for row in rows if (row["method"], row["table"], row["epsilon"]) == (method, table, epsilon)]
    return None if not found or None in found else sum(found) / len(found)


def beside_independent(rows):
    """Our error over that of independent columns, at every budget."""
    some = [row for row in rows if row["table"] in NAMES]
    some = [row for row in some if row["workload"] == ("2-ways" if row["table"] == "hundred" else "3-ways")]
    epsilons = sorted({row["epsilon"] for row in some if row["method"] == OURS})
    lines = []
    for table in (name for name in NAMES if any(row["table"] == name for row in some)):
        for other in ("independent", "independent, told n"):
            pairs = [(means(some, OURS, table, each), means(some, other, table, each)) for each in epsilons]
            cells = ["–" if None in pair else f"{pair[0] / pair[1]:.3f}" for pair in pairs]
            lines.append(f"| {table} | {other} | {' | '.join(cells)} |")
    words = (
        "Our mean error over that of the product of single columns, which has all of the budget for them: it counts "
        "the rows as we do, by what it measured, or is told their number, which is a favour. Three seeds below ε = 0.1 "
        "and for ours on the tables of others."
    )
    columns = ["table", "beside", *(f"ε = {each:g}" for each in epsilons)]
    return titled("Beside independent columns", words, columns, lines)


def estimates(rows):
    """What a release thinks of its own error, over what it is."""
    some = [row for row in rows if row["method"] == OURS and row["workload"] == "3-ways" and "estimated" in row]
    some = [row for row in some if "error" in row]
    lines = []
    for table, epsilon in settings_of(some):
        here = [row for row in some if (row["table"], row["epsilon"]) == (table, epsilon)]
        ratio = spread([row["estimated"] / row["error"] for row in here])
        chosen = ", ".join(dict.fromkeys(row["chosen"] for row in here))
        lines.append(f"| {table} | {epsilon:g} | {chosen} | {spread([row['error'] for row in here])} | {ratio} |")
    columns = ["table", "ε", "method chosen", "error", "estimated over true"]
    return titled("What a release says of itself", "`release.error` beside the truth.", columns, lines)


def predicted(rows):
    """For each setting that was planned: what the plan said of each method, and what came."""
    runs = {(row["method"], row["table"], row["epsilon"], row["workload"], row["seed"]): row for row in rows}
    for row in rows:
        if row["method"] != OURS or "plan" not in row:
            continue
        setting = (row["table"], row["epsilon"], row["workload"], row["seed"])
        pairs = [
            (each["method"], each["error"], runs[f"{OURS}:{each['method']}", *setting]["error"])
            for each in row["plan"]
            if "error" in runs.get((f"{OURS}:{each['method']}", *setting), {})
        ]
        if pairs:
            yield setting, pairs


def correlation(pairs):
    from scipy.stats import spearmanr

    told, came = [pair[1] for pair in pairs], [pair[2] for pair in pairs]
    if len(set(told)) < 2 or len(set(came)) < 2:
        return None
    return float(spearmanr(told, came).statistic)


def plans(rows):
    lines, everything, regrets = [], [], []
    for (table, epsilon, workload, _), pairs in predicted(rows):
        everything += pairs
        first, best = min(pairs, key=lambda pair: pair[1]), min(pairs, key=lambda pair: pair[2])
        regrets.append(first[2] / best[2])
        rank = correlation(pairs)
        lines.append(
            f"| {table} | {epsilon:g} | {workload} | {first[0]} | {first[1]:.3g} | {first[2]:.3g} | {best[0]} "
            f"| {regrets[-1]:.2f} | {'–' if rank is None else f'{rank:.2f}'} |"
        )
    if not lines:
        return []
    rank = correlation(everything)
    words = (
        f"What the plan foresaw beside what came, {len(everything)} runs: rank correlation "
        f"{'–' if rank is None else f'{rank:.3f}'}; the method that the plan prefers has {median(regrets):.2f} times "
        f"the error of the best one in the median, {max(regrets):.2f} at worst."
    )
    columns = ["table", "ε", "workload", "preferred", "foreseen", "came", "best", "times the best", "rank correlation"]
    return titled("The plan", words, columns, lines)


def classifier(scores):
    lines = [
        f"| {row['method']} | {'–' if row['epsilon'] is None else format(row['epsilon'], 'g')} | {row['accuracy']:.3f} "
        f"| {row['auc']:.3f} |"
        for row in scores
        if "accuracy" in row
    ]
    words = "Gradient-boosted trees that predict the income of Adult, trained on synthetic rows, tested on true ones."
    return titled("A classifier", words, ["trained on", "ε", "accuracy", "AUC"], lines)


def failures(rows):
    lines = [
        f"| {row['method']} | {row['table']} | {row['epsilon']:g} | {row['workload']} | {row['failure']} "
        f"| {row.get('all_seconds', 0):.0f} | {row.get('all_megabytes', 0):.0f} |"
        for row in rows
        if "failure" in row
    ]
    columns = ["method", "table", "ε", "workload", "why", "CPU s", "MB"]
    return titled("What did not end", "Runs without an answer.", columns, lines)


# Figures.


def drawing(wide, high, **settings):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    # The same figure has the same bytes.
    matplotlib.rcParams |= {"svg.hashsalt": "release", "svg.fonttype": "none", "font.size": 8}
    return pyplot.subplots(figsize=(wide, high), **settings)


def lines(rows, path):
    """Error against epsilon, a line for each method, a frame for each table."""
    some = [
        row for row in rows if row["workload"] == "3-ways" and ":" not in row["method"] and error_of(row) is not None
    ]
    tables = [name for name in NAMES if any(row["table"] == name for row in some)]
    figure, frames = drawing(10, 3 * -(-len(tables) // 3), nrows=-(-len(tables) // 3), ncols=3, squeeze=False)
    for frame, table in zip(frames.flat, tables, strict=False):
        for place, method in enumerate(methods_of(some)):
            here = [row for row in some if (row["table"], row["method"]) == (table, method)]
            at = sorted({row["epsilon"] for row in here})
            found = [[error_of(row) for row in here if row["epsilon"] == epsilon] for epsilon in at]
            middle = [median(each) for each in found]
            bars = [
                [mid - min(each) for mid, each in zip(middle, found, strict=True)],
                [max(each) - mid for mid, each in zip(middle, found, strict=True)],
            ]
            width = 2.2 if method == OURS else 1
            if at:
                frame.errorbar(at, middle, bars, marker="o", markersize=3, lw=width, color=f"C{place}", label=method)
        frame.set(title=table, xscale="log", yscale="log")
    for frame in frames.flat[len(tables) :]:
        frame.set_visible(False)
    for frame in frames[-1]:
        frame.set_xlabel("epsilon")
    for frame in frames[:, 0]:
        frame.set_ylabel("mean L1 error, all 3-ways")
    frames.flat[0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def scatter(rows, path):
    """What the plan foresaw against what came."""
    pairs = [pair for _, found in predicted(rows) for pair in found]
    if not pairs:
        return
    figure, frame = drawing(5, 4.5)
    for place, method in enumerate(dict.fromkeys(pair[0] for pair in pairs)):
        here = np.array([pair[1:] for pair in pairs if pair[0] == method])
        frame.scatter(here[:, 0], here[:, 1], s=12, color=f"C{place}", label=method)
    edges = [min(min(pair[1:]) for pair in pairs), max(max(pair[1:]) for pair in pairs)]
    frame.plot(edges, edges, ":", color="grey")
    frame.set(xscale="log", yscale="log", xlabel="error foreseen", ylabel="error that came")
    rank = correlation(pairs)
    frame.set_title(f"{len(pairs)} releases" + ("" if rank is None else f", rank correlation {rank:.3f}"))
    frame.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
