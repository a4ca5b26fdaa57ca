"""Wide questions: forty two-valued columns, 10⁵ counts of eight at a time, one per cent of n at 99 %; and NLTCS.

python bench/wide.py                 runs all tables, writes bench/results/wide.md and wide.png
python bench/wide.py --only tree     one table, nothing written
python bench/wide.py --quick         fewer questions and rows, nothing written

One unit is the price of one direct Gaussian answer of this error. The curator is told how many questions to expect and
decides by itself when to build a model; every answer is compared with the truth. Beside it: the lattice alone (its
price does not depend on data), one direct answer each, the classic sparse vector with the same promise, and textbook
private multiplicative weights.
"""

import argparse
import json
import tempfile
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np

import discreet as dp
import wide_data
from discreet.accounting.gaussian_dp import squared_mu_of_pure
from discreet.accounting.renyi_dp import ORDERS
from discreet.curator.records import STEEPNESS
from discreet.errors import DiscreetError
from discreet.estimate.estimator import normal_quantile
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.lab.textbook.pmw import PMW
from discreet.mechanism.sparse_vector import sparse_vector
from discreet.plan.plan import plan_steps
from discreet.plan.steps import Target
from discreet.query.linear import Linear
from discreet.query.product import Product
from discreet.schema import Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from machine import describe

ERROR, CONFIDENCE, QUESTIONS = 0.01, 0.99, 10**5
EPSILON = 1
LIMITS = {"tree": 500, "dense": 700, "latent": 900}
CLIMBS = 3000


@dataclass
class Outcome:
    """What came of one stream of questions."""

    name: str
    asked: int = 0
    units: float = 0.0
    built: str = "none"
    opened_at: int | None = None
    opened_units: float = 0.0
    building: float = 0.0
    hits: int = 0
    origins: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    largest: float = 0.0
    off: list[float] = field(default_factory=list)
    micros: float = 0.0
    truth_micros: float = 0.0


def unit(rows):
    """The squared mu of one direct answer."""
    return (normal_quantile(CONFIDENCE) / (ERROR * rows)) ** 2


def spent(desk, rows):
    """What was spent, in units, at the order at which a Gaussian has most room."""
    (account,) = desk.ledger.balances(table=desk.table.name)
    open_orders = [place for place, ticks in enumerate(account.spent_ticks) if ticks <= account.gate.limit[place]]
    order = max(open_orders, key=lambda place: account.gate.limit[place] / ORDERS[place])
    return float(account.spent_ticks[order]) * 1e-15 * 2 / float(ORDERS[order]) / unit(rows)


def curator(wide, folder, name, expected=QUESTIONS):
    budget = dp.Budget(epsilon=EPSILON, delta=1e-9, gate="renyi")
    return dp.Curator(wide.table, budget=budget, ledger=folder / f"{name}.sqlite", expected_questions=expected)


def note(outcome, answer, true, rows):
    off = abs(answer.value - true) / (ERROR * rows)
    outcome.origins[answer.origin] = outcome.origins.get(answer.origin, 0) + 1
    outcome.failures[answer.origin] = outcome.failures.get(answer.origin, 0) + (off > 1)
    if answer.origin == "model":
        outcome.largest = max(outcome.largest, off)
        outcome.off.append(off)


def stream(wide, desk, count, *, give_up_after=None):
    """Ask all questions. `give_up_after` ends a stream for which no model was found: the lattice goes on as ever."""
    outcome = Outcome(wide.name)
    questions = list(wide.questions(count, seed=7))
    true = wide.truth(questions)
    start, session_seen = process_time(), False
    for place, question in enumerate(questions):
        before = process_time()
        answer = desk.ask(question, error=ERROR * wide.rows, confidence=CONFIDENCE)
        outcome.asked += 1
        note(outcome, answer, int(true[place]), wide.rows)
        session = desk._executor.session
        if session is not None and not session_seen:
            session_seen = True
            outcome.opened_at, outcome.building = place, process_time() - before
            outcome.built = session.built.kind if session.built else "given up"
            outcome.opened_units = spent(desk, wide.rows)
            allowed, start = session.hits_left, process_time()
        if (
            session_seen
            and desk._executor.session.built is None
            and place - outcome.opened_at >= (give_up_after or count)
        ):
            break
    if session_seen:
        outcome.micros = (process_time() - start) / max(1, outcome.asked - outcome.opened_at - 1) * 1e6
        outcome.hits = allowed - desk._executor.session.hits_left
        sample = questions[:2000]
        before = process_time()
        for question in sample:
            wide.table.evaluate(question)
        outcome.truth_micros = (process_time() - before) / len(sample) * 1e6
    outcome.units = spent(desk, wide.rows)
    return outcome


def climb(wide, desk, steps):
    """An analyst who sees the truth and changes a question one column at a time towards the model's worst error."""
    outcome, random = Outcome(wide.name), np.random.default_rng(11)
    names = sorted(wide.common)
    pool = {
        factor.columns[0]: factor
        for question in wide.questions(200, seed=3)
        for each in question.products
        for factor in each.factors
    }
    chosen = list(random.choice(len(names), wide.ways, replace=False))
    best = -1.0
    for _ in range(steps):
        moved = list(chosen)
        moved[random.integers(len(moved))] = int(random.choice([at for at in range(len(names)) if at not in moved]))
        question = Linear([Product(tuple(pool[names[at]] for at in sorted(moved)))])
        answer = desk.ask(question, error=ERROR * wide.rows, confidence=CONFIDENCE)
        true = int(wide.truth([question])[0])
        outcome.asked += 1
        note(outcome, answer, true, wide.rows)
        off = abs(answer.value - true) if answer.origin == "model" else -1.0
        if off >= best:
            chosen, best = moved, off
        elif random.random() < 0.01:
            chosen, best = list(random.choice(len(names), wide.ways, replace=False)), -1.0
    outcome.units = spent(desk, wide.rows)
    return outcome


def lattice_alone(wide, count):
    """What the lattice pays for the same questions, after every thousand: it does not depend on the rows."""
    known = GaussianLattice.nothing(wide.table.domain, wide.table.unit)
    target, total = Target(ERROR * wide.rows, CONFIDENCE), 0.0
    for place, question in enumerate(wide.questions(count, seed=7), start=1):
        steps = plan_steps([(question, target)], known)
        for step in steps.steps:
            known.learn(step)
        total += steps.price
        if place % 1000 == 0:
            yield total / unit(wide.rows)


def alone(count):
    """The lattice alone, on both widths; kept in a file, because it takes long and does not depend on the rest."""
    place = Path(__file__).parent / "results" / "wide_lattice.json"
    found = json.loads(place.read_text()) if place.exists() else {}
    tables = {"nltcs": wide_data.nltcs(), "tree": replace(wide_data.tree(rows=1000), rows=wide_data.ROWS)}
    for name, wide in tables.items():
        if name not in found:
            found[name] = []
            for units in lattice_alone(wide, count):
                found[name].append(round(units, 2))
                place.write_text(json.dumps(found))
    return found


def sparse_vector_units(rows, count):
    """The price of one hit of the classic Laplace sparse vector: it must be paid when the session opens.

    An answer that is off by the error passes with 1 % at most, as for the coin; and of so many answers that are right
    none is a hit, with 99 %. (So many hits are as many runs: noise for several hits behind one threshold costs more.)
    """
    low, high = Fraction(1, 10**6), Fraction(10)
    for _ in range(40):
        middle = (low + high) / 2
        run = sparse_vector(epsilon=middle, sensitivity=1, threshold=0)
        reach = run.error(CONFIDENCE, queries=1) + run.error(CONFIDENCE, queries=count)
        low, high = (low, middle) if reach <= ERROR * rows else (middle, high)
    return float(squared_mu_of_pure(high)) / unit(rows)


def replaced(table):
    """The same rows where rows are exchanged, so that their number is public."""
    unit = Unit(neighbors="replace_one")
    codes = [np.concatenate([codes[0] for codes, _ in table.source.cells((name,))]) for name in table.domain]
    frame = Frame.of_codes(codes, domain=table.domain, unit=unit)
    return Table(Schema(table.name, table.domain, unit), frame)


def textbook(wide, folder, setting, count):
    """What private multiplicative weights says to the same task."""
    budget = dp.Budget(epsilon=EPSILON, delta=1e-9)
    try:
        with dp.Ledger(folder / f"pmw-{setting}-{wide.name}.sqlite") as ledger:
            ledger.cap(budget, table=wide.table.name)
            # The textbook settings need a public number of rows.
            table = wide.table if setting == "calibrated" else replaced(wide.table)
            session = PMW(
                table,
                ledger=ledger,
                epsilon=budget.epsilon,
                setting=setting,
                confidence=CONFIDENCE,
                queries=count,
                **({"updates": 50} if setting == "calibrated" else {}),
            )
            return f"promises ± {session.error / wide.rows:.2%} of n for {session.updates_left} updates"
    except DiscreetError as refused:
        return f"refuses: {str(refused).splitlines()[0]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=[*LIMITS, "unfit", "nltcs", "lattice"])
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if chosen.only == "lattice":
        alone(QUESTIONS)
        return
    names = [chosen.only] if chosen.only else [*LIMITS, "unfit", "nltcs"]
    count, rows = (3000, 10**5) if chosen.quick else (QUESTIONS, wide_data.ROWS)
    lines, figures = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in names:
            wide = wide_data.nltcs() if each == "nltcs" else getattr(wide_data, each)(rows=rows)
            with curator(wide, folder, each) as desk:
                found = stream(wide, desk, count, give_up_after=300 if each == "unfit" else None)
                print(found.name, {k: v for k, v in vars(found).items() if k != "off"}, flush=True)
                climbed = None
                if each == "tree":
                    climbed = climb(wide, desk, CLIMBS if not chosen.quick else 300)
                    print("climbing", {k: v for k, v in vars(climbed).items() if k != "off"}, flush=True)
            unknown = None
            if each == "tree":
                with curator(wide, folder, "unknown", expected=None) as desk:
                    unknown = stream(wide, desk, min(count, 20_000))
                    print("not told how many", {k: v for k, v in vars(unknown).items() if k != "off"}, flush=True)
            figures[each] = (wide, found, climbed, unknown)
        series = alone(count) if not chosen.only and not chosen.quick else {}
        lines = report(figures, series, count, folder)
    if not chosen.only and not chosen.quick:
        place = Path(__file__).parent / "results"
        (place / "wide.md").write_text("\n".join(lines) + "\n")
        figure(figures, series, place / "wide.png")
    print("\n".join(lines))


HEAD = (
    "table",
    "model",
    "opened at question",
    "units then",
    "units in all",
    "limit",
    "hits",
    "model answers",
    "of them outside",
    "measured answers outside",
    "error of a model answer / allowed: median · 99.9 % · largest",
    "building, CPU s",
    "µs a question besides the truth (the truth)",
)


def report(figures, series, count, folder):
    lines = [
        "# Wide questions",
        "",
        f"{describe('scipy')}. bench/wide.py: {count:,} questions on each table, error {ERROR:.0%} of n, confidence "
        f"{CONFIDENCE:.0%}, add_remove, Rényi gate with epsilon {EPSILON} and delta 1e-9, told how many to expect. "
        "One unit is one direct Gaussian answer of this error.",
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{'---|' * len(HEAD)}",
        *(row(each, found, count) for each, (_, found, _, _) in figures.items()),
        "",
        "## Beside it",
        "",
    ]
    for each, values in series.items():
        asked = 1000 * len(values)
        lines.append(
            f"- {each}: the lattice alone pays {values[-1]:.0f} units for {asked:,}; one direct answer each {asked:,}."
        )
    if "unfit" in figures and "tree" in series:
        tried, alone = figures["unfit"][1].opened_units, series["tree"][-1]
        lines.append(
            f"- unfit: the attempt was given up after {tried:.0f} units. With all of the lattice after it that is at "
            f"most {(alone + tried) / alone:.2f} times the lattice alone; what the attempt has measured is not lost, "
            "so it is less. (The stream was ended 300 questions later: the lattice goes on as it does alone.)"
        )
    price = sparse_vector_units(wide_data.ROWS, count)
    lines.append(
        f"- classic Laplace sparse vector with the coin's promise, and no false alarm in {count:,} answers of a model "
        f"that is right: {price:,.0f} units for each hit that it may have, paid at the start whether it comes or not; "
        f"a hit of the coin is {(STEEPNESS / normal_quantile(CONFIDENCE)) ** 2:.0f}, paid when it comes."
    )
    for each in ("tree", "nltcs"):
        for setting in ("bun", "root", "cube", "calibrated") if each in figures else ():
            said = textbook(figures[each][0], folder, setting, count)
            lines.append(f"- private multiplicative weights, {setting}, on {each}: {said}")
    return [*lines, *(line for each, found in figures.items() for line in others(each, *found[2:]))]


def row(each, found, count):
    off = np.array(found.off or [np.nan])
    measured = sum(number for origin, number in found.origins.items() if origin not in ("model", "known"))
    outside = sum(number for origin, number in found.failures.items() if origin not in ("model", "known"))
    cells = (
        each,
        found.built,
        "–" if found.opened_at is None else found.opened_at,
        f"{found.opened_units:.0f}",
        f"{found.units:.0f}" + (f" after {found.asked:,}" if found.asked < count else ""),
        LIMITS.get(each, "–"),
        found.hits,
        f"{found.origins.get('model', 0):,}",
        found.failures.get("model", 0),
        f"{outside} of {measured:,}",
        f"{np.nanmedian(off):.3f} · {np.nanquantile(off, 0.999):.3f} · {found.largest:.3f}",
        f"{found.building:.0f}",
        f"{found.micros - found.truth_micros:.0f} ({found.truth_micros:.0f})",
    )
    return f"| {' | '.join(map(str, cells))} |"


def others(each, climbed, unknown):
    if climbed is not None:
        yield (
            f"- {each}, an analyst who sees the truth and climbs towards the model's worst error, {climbed.asked:,} "
            f"questions after the stream: {climbed.failures.get('model', 0)} of {climbed.origins.get('model', 0)} "
            f"model answers outside, the largest {climbed.largest:.2f} of the error; origins {climbed.origins}; "
            f"{climbed.units:.0f} units in all at the end."
        )
    if unknown is not None:
        yield (
            f"- {each}, not told how many questions to expect: opened at question {unknown.opened_at}, "
            f"{unknown.units:.0f} units after {unknown.asked:,}."
        )


def figure(figures, series, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(7, 4.5))
    for each, values in series.items():
        asked = 1000 * np.arange(1, len(values) + 1)
        axes.loglog(asked, values, label=f"lattice alone, {each}")
        axes.loglog(asked, asked, ":", color="grey")
    for each, (_, found, _, _) in figures.items():
        if found.built in ("tree", "mixture"):
            axes.loglog(
                [found.opened_at + 1, found.asked], [found.opened_units, found.units], "o-", label=f"model, {each}"
            )
    axes.set_xlabel("questions")
    axes.set_ylabel("units (direct answers)")
    axes.legend()
    drawing.tight_layout()
    drawing.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
