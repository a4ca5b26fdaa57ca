"""The tree of cliques: time to fit, to answer and to draw rows, on Adult and on forty binary columns.

Run: python bench/tree.py [--rounds N]     Writes results/tree.md beside it.

Beside it stand the plain variants, in the same run: mirror descent with the same walks, messages in numpy, a query as a
sum over its marginal. The noise is numpy's: nothing here is released.
"""

import argparse
import hashlib
import time
from itertools import combinations
from math import prod
from pathlib import Path

import numpy as np
import pyarrow.parquet

import machine
from discreet import load_adult
from discreet.data import ADULT
from discreet.model.interface import NoisyMarginal
from discreet.model.tree import max_entropy
from discreet.model.tree.elimination import marginal_by_elimination
from discreet.model.tree.junction_tree import fits, triangulate
from discreet.model.tree.max_entropy import gather
from discreet.model.tree.message_passing import layout_of
from discreet.model.tree.tree_model import fit_tree
from discreet.query.linear import Linear
from discreet.query.product import box
from discreet.schema import Boolean, Domain

RESULTS = Path(__file__).parent / "results"
MOST_CELLS = 2**17


def cpu(call, rounds=1):
    """The median CPU seconds of a call, and what it gave last."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        found = call()
        times.append(time.process_time() - start)
    return float(np.median(times)), found


class Census:
    """Adult with its codes, and noisy looks at its pairs."""

    def __init__(self):
        self.domain = load_adult().domain
        path = ADULT.with_suffix(".parquet")
        self.checksum = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        table = pyarrow.parquet.read_table(path)
        self.codes = {}
        for name in self.domain:
            values = table[name].to_pylist()
            code = {value: self.domain[name].code(value) for value in set(values)}
            self.codes[name] = np.array([code[value] for value in values])
        self.rows = table.num_rows
        self.sizes = {name: self.domain[name].size for name in self.domain}

    def counts(self, columns):
        shape = [self.sizes[name] for name in columns]
        places = np.ravel_multi_index([self.codes[name] for name in columns], shape)
        return np.bincount(places, minlength=prod(shape)).reshape(shape).astype(float)

    def pairs(self, most, worth):
        """Pairs by their mutual information, weighed by `worth(information, cells)`, while the tree keeps small."""
        scored = []
        for pair in combinations(sorted(self.domain), 2):
            joint = self.counts(pair) / self.rows
            apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            there = joint > 0
            scored.append((worth(float(np.sum(joint[there] * np.log(joint[there] / apart[there]))), joint.size), pair))
        singles, chosen = [(name,) for name in sorted(self.domain)], []
        for _, pair in sorted(scored, reverse=True):
            if len(chosen) < most and fits(singles + chosen, pair, self.sizes, MOST_CELLS):
                chosen.append(pair)
        return chosen

    def looks(self, pairs, sigma):
        generator = np.random.default_rng(0)
        scopes = [(name,) for name in sorted(self.domain)] + pairs
        return [
            NoisyMarginal(
                scope, None, self.counts(scope) + generator.normal(0, sigma, [self.sizes[n] for n in scope]), sigma**-2
            )
            for scope in scopes
        ]


def mirror_descent(domain, looks, total, until, most_seconds):
    """The usual fit: θ ← θ − η·∇L, η doubled after a gain and halved after none; CPU seconds to come below a loss."""
    start = time.process_time()
    scopes = sorted({look.columns for look in looks})
    layout = layout_of(triangulate(scopes, {name: domain[name].size for name in domain}), scopes)
    evidence = gather(domain, looks, {scope: layout.columns[layout.places[scope]] for scope in scopes})
    walker = max_entropy._Walker(layout, evidence)

    def state(potentials):
        _, beliefs = walker.tables(potentials)
        residual = total * evidence.measure(beliefs[walker.where]) - evidence.wanted
        return potentials, residual, 0.5 * float(residual @ residual)

    now, pace, walks = state(np.zeros(evidence.starts[-1])), 1e-4, 1
    while now[2] > until and time.process_time() - start < most_seconds:
        tried = state(now[0] - pace * evidence.back(now[1]))
        walks += 1
        pace = pace * 1.5 if tried[2] < now[2] else pace / 2
        now = tried if tried[2] < now[2] else now
    return time.process_time() - start, now[2], walks


def census(rounds):
    table = Census()
    lines = [
        f"## Fit on Adult: {table.rows:,} rows, {len(table.domain)} columns, all single columns and pairs, tree below "
        f"{MOST_CELLS:,} cells (sha256 {table.checksum}…)",
        "",
        "Pairs are taken by mutual information, or by mutual information for each cell, which has room for 40. Warm is "
        "the fit without the last pair continued with it. Mirror descent has the same kernels, and stops at the same "
        "loss or after 8 s.",
        "",
        "| pairs | cells | noise sd | cold, CPU s | steps | warm, CPU s | steps | loss (numbers/2) "
        "| mirror descent, CPU s | its loss |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for worth in (lambda information, cells: information, lambda information, cells: information / cells):
        pairs = table.pairs(40, worth)
        for sigma in (100.0, 10.0):
            looks = table.looks(pairs, sigma)
            before = fit_tree(table.domain, looks[:-1], total=table.rows)
            cold, tree = cpu(lambda looks=looks: fit_tree(table.domain, looks, total=table.rows), rounds)
            warm, again = cpu(
                lambda looks=looks, before=before: fit_tree(table.domain, looks, total=table.rows, start=before), rounds
            )
            assert tree.converged
            assert again.converged
            plain, loss, _ = mirror_descent(table.domain, looks, table.rows, tree.loss, 8.0)
            numbers = sum(look.values.size for look in looks)
            lines.append(
                f"| {len(pairs)} | {tree.cells:,} | {sigma:.0f} | {cold:.2f} | {tree.steps} | {warm:.2f} "
                f"| {again.steps} | {tree.loss:.0f} ({numbers / 2:.0f}) | {plain:.1f} | {loss:.0f} |"
            )
    drawn, _ = cpu(lambda: tree.rows(table.rows), rounds)
    spread, independent = [], []
    rows = tree.rows(table.rows)
    for pair in pairs:
        shape = [table.sizes[name] for name in pair]
        counts = np.bincount(np.ravel_multi_index([rows[name] for name in pair], shape), minlength=prod(shape))
        wanted = tree.marginal(pair).reshape(-1)
        spread.append(np.abs(counts - wanted).sum() / table.rows)
        independent.append(np.sqrt(2 / np.pi * np.maximum(wanted * (1 - wanted / table.rows), 0)).sum() / table.rows)
    lines += [
        "",
        f"{table.rows:,} rows of the last tree: {drawn:.2f} CPU s. Mean L1 distance of their pair marginals from the "
        f"model's: {np.mean(spread):.4f}; of independent rows about {np.mean(independent):.4f}.",
    ]
    return lines


def binary(near, extra, seed=0, rows=10**6, sigma=300.0, columns=40):
    """Looks at the characters of 40 columns that depend on each other along a tree and some more pairs."""
    generator = np.random.default_rng(seed)
    names = [f"c{at:02}" for at in range(columns)]
    pairs = [(int(generator.integers(max(0, at - 4), at)), at) for at in range(1, columns)]
    while len(pairs) < columns - 1 + extra:
        one, other = sorted(map(int, generator.integers(0, columns, 2)))
        if 0 < other - one < near and (one, other) not in pairs:
            pairs.append((one, other))
    force = {pair: float(generator.choice([-1, 1]) * generator.uniform(0.2, 0.6)) for pair in pairs}
    lean = generator.normal(0, 0.3, columns)
    # Gibbs sampling of an Ising model: 10⁵ chains, 15 sweeps, counted ten times each.
    signs = generator.choice(np.array([-1, 1], dtype=np.int8), size=(rows // 10, columns))
    for _ in range(15):
        for at in range(columns):
            field = lean[at] + sum(push * signs[:, pair[pair[0] == at]] for pair, push in force.items() if at in pair)
            signs[:, at] = np.where(generator.random(len(signs)) < 1 / (1 + np.exp(-2 * field)), 1, -1)
    looks = []
    for chosen in [(at,) for at in range(columns)] + pairs:
        value = rows * signs[:, list(chosen)].prod(axis=1).mean() + generator.normal(0, sigma)
        shape = (1,) * len(chosen)
        looks.append(NoisyMarginal(tuple(names[at] for at in chosen), shape, np.full(shape, value), sigma**-2))
    return Domain({name: Boolean() for name in names}), looks, rows


def graph(near, extra, rounds):
    """A row of the table: fit, answers and characters on one graph."""
    domain, looks, total = binary(near, extra)
    before = fit_tree(domain, looks[:-1], total=total)
    cold, tree = cpu(lambda: fit_tree(domain, looks, total=total), rounds)
    warm, _ = cpu(lambda: fit_tree(domain, looks, total=total, start=before), rounds)
    generator = np.random.default_rng(1)
    queries = []
    for _ in range(2000):
        chosen = generator.choice(list(domain), 8, replace=False)
        queries.append(Linear([box({name: np.arange(2) == generator.integers(2) for name in chosen})]))
    sizes = dict.fromkeys(domain, 2)

    def by_marginal(query):
        table = marginal_by_elimination(tree.layout, tree.directed, tree.beliefs, query.scope, sizes)
        return total * query.products[0].contract(table, query.scope)

    one, answers = cpu(lambda: [tree.answer(query) for query in queries], rounds)
    many, together = cpu(lambda: tree.answers(queries), rounds)
    slow, plain = cpu(lambda: [by_marginal(query) for query in queries[:100]])
    np.testing.assert_allclose(plain, answers[:100], rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(together, answers, rtol=1e-12)
    pairs, triples = (list(combinations(domain, size)) for size in (2, 3))
    twos, _ = cpu(lambda: tree.characters(pairs), rounds)
    threes, _ = cpu(lambda: tree.characters(triples), rounds)
    tables, _ = cpu(lambda: [tree.marginal(pair) for pair in pairs])
    scopes = [look.columns for look in looks]
    asked, _ = cpu(lambda: [fits(scopes[:-1], scopes[-1], sizes, MOST_CELLS) for _ in range(100)], rounds)
    cells = [
        f"{extra} within {near}",
        f"{max(map(len, tree.shape.cliques))} columns",
        f"{tree.cells:,}",
        f"{cold:.2f}",
        f"{warm:.2f}",
        f"{one / 2000 * 1e6:.0f}",
        f"{many / 2000 * 1e6:.0f}",
        f"{slow / 100 * 1e6:,.0f}",
        f"{twos * 1e3:.1f}",
        f"{threes * 1e3:.0f}",
        f"{tables * 1e3:.0f}",
        f"{asked * 10:.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def columns(rounds):
    titles = ["more pairs", "largest clique", "cells", "fit cold, CPU s", "warm", "answer, µs"]
    titles += ["of 2,000 at once, µs", "by the marginal, µs", "780 pair characters, ms", "9,880 triples, ms"]
    titles += ["780 pair marginals, ms", "`fits`, ms"]
    return [
        "## Forty binary columns: 40 singles, 39 edges of a tree and more pairs, as characters (parts 1, …, 1)",
        "",
        "Answers are conjunctions of eight random columns, one call each, or 2,000 in one call. Beside them, the same "
        "by the marginal of the eight columns (256 cells, messages in numpy).",
        "",
        "| " + " | ".join(titles) + " |",
        "|---" * len(titles) + "|",
        *(graph(near, extra, rounds) for near, extra in ((6, 12), (40, 12), (14, 70), (24, 50), (24, 80))),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    # The kernels are compiled before anything is timed.
    domain, looks, total = binary(6, 2, rows=10**4)
    fit_tree(domain, looks, total=total).characters([("c00",)])
    lines = ["# Tree", "", machine.describe("scipy"), "", f"CPU seconds on one core, medians of {rounds}.", ""]
    text = "\n".join([*lines, *census(rounds), "", *columns(rounds), ""])
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "tree.md").write_text(text)


if __name__ == "__main__":
    main()
