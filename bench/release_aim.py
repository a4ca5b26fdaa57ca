"""AIM as its paper has it, on our tree of cliques, so that it can be compared at every budget in little time.

It chooses, round by round, the marginal on which the model is worst beyond the noise to expect, measures it whole, and
fits again. The noise is numpy's: nothing here is released. Two favours: its zero-concentrated budget is read from
Gaussian DP, which gives it a tenth more than its own conversion, and it warm starts as mbi 2.0.0 does.

[McKenna, Mullins, Sheldon & Miklau 2022, Alg. 3 and 4]
"""

from itertools import combinations
from math import pi, prod, sqrt

import numpy as np

from release_data import Sample

# The tree may grow to this many cells as the budget is spent; the paper's 80 MB are 10⁷.
MOST_CELLS = 2**17
# Marginals above this many cells are no candidates, as in its authors' code.
MOST_OF_ONE = 10_000
STEPS, LAST_STEPS = 30, 200
# A marginal for which the tree would need too large a table is read off this many of its rows.
ROWS = 500_000


def aim(table, weights, *, mu):
    """A tree, fitted to what AIM measures with this budget, and the function that answers from it."""
    from discreet.model.interface import NoisyMarginal
    from discreet.model.tree.junction_tree import fits
    from discreet.model.tree.tree_model import fit_tree

    domain, rho, looks = table.domain(), mu * mu / 2, []
    rounds = 16 * len(table.sizes)
    sigma, epsilon = sqrt(rounds / (2 * 0.9 * rho)), sqrt(8 * 0.1 * rho / rounds)
    worth = candidates(table, weights)
    truth = {columns: table.counts(columns) for columns in worth}

    def measure(columns):
        looks.append(
            NoisyMarginal(columns, None, truth[columns] + np.random.normal(0, sigma, truth[columns].shape), sigma**-2)
        )

    for name in sorted(table.sizes):
        measure((name,))
    spent = len(looks) * 0.5 / sigma**2
    heavy = np.array([1 / look.values.size for look in looks])
    total = max(1.0, float(heavy @ [look.values.sum() for look in looks] / heavy.sum()))
    tree, last = fit_tree(domain, looks, total=total), False
    answer = answers_of_tree(tree, table)
    while not last:
        if rho - spent < 2 * (0.5 / sigma**2 + epsilon**2 / 8):
            last = True
            sigma, epsilon = sqrt(1 / (2 * 0.9 * (rho - spent))), sqrt(8 * 0.1 * (rho - spent))
        spent += 0.5 / sigma**2 + epsilon**2 / 8
        scopes = sorted({look.columns for look in looks})
        open_to = [each for each in worth if fits(scopes, each, table.sizes, int(MOST_CELLS * min(1.0, spent / rho)))]
        noise = {each: sqrt(2 / pi) * sigma * truth[each].size for each in open_to}
        off = [worth[each] * (np.abs(truth[each] - answer(each)).sum() - noise[each]) for each in open_to]
        most = max(worth[each] for each in open_to)
        chosen = open_to[int(np.argmax(epsilon / (2 * most) * np.array(off) + np.random.gumbel(size=len(off))))]
        before = answer(chosen)
        measure(chosen)
        tree = fit_tree(domain, looks, total=total, start=tree, steps=LAST_STEPS if last else STEPS)
        answer = answers_of_tree(tree, table)
        if np.abs(answer(chosen) - before).sum() <= noise[chosen]:
            sigma, epsilon = sigma / 2, epsilon * 2
    return tree, answer


def answers_of_tree(tree, table):
    from discreet.errors import TooLarge

    drawn = []

    def answer(columns):
        try:
            return tree.marginal(columns)
        except TooLarge:
            if not drawn:
                codes = tree.rows(ROWS)
                drawn.append(Sample(table.name, table.sizes, np.stack([codes[name] for name in table.sizes], axis=1)))
            return drawn[0].counts(columns) * (tree.total / ROWS)

    return answer


def candidates(table, weights):
    """All marginals below the workload that are small enough; each counts for what it shares with the workload."""
    shared = dict.fromkeys(table.sizes, 0.0)
    for scope, weight in weights.items():
        for name in scope:
            shared[name] += weight
    below = {few for scope in weights for size in range(1, len(scope) + 1) for few in combinations(scope, size)}
    small = [each for each in sorted(below) if prod(table.sizes[name] for name in each) <= MOST_OF_ONE]
    return {each: sum(shared[name] for name in each) for each in small}
