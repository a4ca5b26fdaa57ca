"""The accounting figures: what a thousand counts cost under each theorem, what a gate lets through, how fast it is.

python bench/accounting.py            prints the tables and writes bench/results/accounting.md
"""

import platform
import sys
from fractions import Fraction
from math import log
from pathlib import Path
from statistics import NormalDist, median
from time import perf_counter

from discreet.accounting import (
    ORDERS,
    TICK,
    Compose,
    Gaussian,
    Laplace,
    Pure,
    Repeat,
    Selection,
    calibrate,
    concentrated_limit,
    epsilon,
    gaussian_gate,
    gaussian_sigma,
    lecture_sigma,
    pure_gate,
    renyi_gate,
)
from discreet.accounting.event import total_loss
from discreet.accounting.filter import FULL_TICKS, accounting_for

SPENDS = 1_000_000


def table(title, head, rows):
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join([*lines, ""])


def thousand_counts():
    normal, laplace = NormalDist().inv_cdf(0.975), log(20)
    rows = []
    for name, by, make, quantile in [
        ("exact Gaussian", "gaussian", lambda scale: Repeat(Gaussian(scale, 1), 1000), normal),
        ("zCDP", "concentrated", lambda scale: Repeat(Gaussian(scale, 1), 1000), normal),
        ("Rényi, 60 orders", "renyi", lambda scale: Repeat(Gaussian(scale, 1), 1000), normal),
        ("advanced (lectures), Laplace", "advanced", lambda scale: Repeat(Laplace(scale, 1), 1000), laplace),
        ("zCDP, Laplace", "concentrated", lambda scale: Repeat(Laplace(scale, 1), 1000), laplace),
        ("basic, Laplace", "basic", lambda scale: Repeat(Laplace(scale, 1), 1000), laplace),
    ]:
        scale = calibrate(make, epsilon=1, delta=1e-6, by=by)
        rows.append((name, f"{float(scale):.2f}", f"±{quantile * float(scale):.0f}"))
    return table("1,000 counts at epsilon 1, delta 1e-6", ("accounting", "scale", "95 % half-width"), rows)


def sigmas():
    rows = []
    for budget, tail in [(0.1, 1e-6), (1, 1e-6), (1, 1e-9), (10, 1e-6), (100, 1e-6)]:
        exact, notes = gaussian_sigma(epsilon=budget, delta=tail), lecture_sigma(epsilon=budget, delta=tail)
        real = epsilon(Gaussian(notes, 1), delta=tail)
        rows.append((budget, tail, f"{float(exact):.4f}", f"{float(notes):.4f}", f"{real:.3g}"))
    head = ("epsilon", "delta", "exact sigma", "lectures' sigma", "true epsilon of the lectures' sigma")
    return table("One Gaussian answer", head, rows)


def gates():
    rows = []
    for budget, tail in [(0.1, 1e-9), (1, 1e-6), (1, 1e-9), (10, 1e-9)]:
        gaussian = float(gaussian_gate(budget, tail).limit[0] * TICK)
        limits = renyi_gate(budget, tail).limit
        renyi = float(max(2 * limit * TICK / order for limit, order in zip(limits, ORDERS, strict=True)))
        zcdp = 2 * float(concentrated_limit(Fraction(str(budget)), Fraction(str(tail))))
        rows.append(
            (budget, tail, f"{gaussian:.5g}", f"{(gaussian / zcdp) ** 0.5:.3f}", f"{(gaussian / renyi) ** 0.5:.3f}")
        )
    head = ("epsilon", "delta", "μ² of the Gaussian gate", "noise of zCDP, as a ratio", "noise of the Rényi gate")
    return table("What a gate lets through: Gaussian noise needed for the same questions", head, rows)


def pure_steps():
    rows = []
    for size in (Fraction(1, 1000), Fraction(1, 10), Fraction(1)):
        costs = [
            f"{float(total_loss(event, accounting_for('gaussian')) / size**2):.4f}"
            for event in (Pure(size), Selection(size))
        ]
        costs += [
            f"{float(2 * total_loss(event, accounting_for('concentrated')) / size**2):.4f}"
            for event in (Pure(size), Selection(size))
        ]
        rows.append((float(size), *costs))
    head = ("ε", "pure: μ²/ε²", "selection: μ²/ε²", "pure: 2ρ/ε²", "selection: 2ρ/ε²")
    return table("What an ε-DP step costs in the Gaussian gate, beside zCDP", head, rows)


def million_spends():
    rows = []
    for gate in (pure_gate(1), gaussian_gate(1, 1e-6), renyi_gate(1, 1e-6)):
        pure = gate.kind == "pure"
        events = [Pure(Fraction(1, 900_001)), Laplace(2 * 10**6, 1), Selection(Fraction(1, 700_001))]
        if not pure:
            events = [Gaussian(3001, 1), Pure(Fraction(1, 10_007)), Selection(Fraction(1, 3_001))]
        spent, counts, times = gate.nothing, [0, 0, 0], []
        for block in range(100):
            start = perf_counter()
            for step in range(SPENDS // 100):
                which = (block + step) % 3
                amount = gate.charge(events[which])
                if gate.fits(spent, amount):
                    spent = gate.add(spent, amount)
                    counts[which] += 1
            times.append((perf_counter() - start) / (SPENDS // 100) * 1e6)
        exact = total_loss(
            Compose(tuple(Repeat(e, n) for e, n in zip(events, counts, strict=True))), accounting_for(gate.kind)
        )
        exact = exact if isinstance(exact, tuple) else (exact,)
        within = any(amount <= most for amount, most in zip(spent, gate.limit, strict=True))
        # An order far past its limit stays at FULL; it can help no more.
        pairs = [(amount, true) for amount, true in zip(spent, exact, strict=True) if amount < FULL_TICKS]
        covered = all(amount * TICK >= true for amount, true in pairs)
        waste = max(float((amount * TICK - true) / true) for amount, true in pairs)
        first, last = median(times[:10]), median(times[-10:])
        rows.append((gate.kind, f"{sum(counts):,}", within, covered, f"{waste:.1e}", f"{first:.1f}", f"{last:.1f}"))
    head = (
        "gate",
        "let through",
        "within cap",
        "≥ exact sum",
        "rounding, relative",
        "µs/spend, first 10 %",
        "last 10 %",
    )
    return table(f"{SPENDS:,} tiny spends, charge included", head, rows)


def main():
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    text = "\n".join(
        [f"# Accounting\n\n{machine}\n", thousand_counts(), sigmas(), gates(), pure_steps(), million_spends()]
    )
    print(text)
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "accounting.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
