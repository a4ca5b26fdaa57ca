"""How well each piece of a goal's marginals would be known after each method has spent its budget."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.known.known import Known
from discreet.known.lattice import subsets
from discreet.model.looks import total_of
from discreet.plan.fill import fill_to_budget
from discreet.privacy.sensitivity import Sensitivity, histogram_sensitivity
from discreet.release import adaptive
from discreet.release.brief import Brief
from discreet.release.fitting import FIT
from discreet.release.layers import DEVIATIONS, Layers, clarity, layers_of, precisions_known
from discreet.release.pairs import MIXTURE, shares_of, size_power
from discreet.types import Columns, Numbers

# Rounds in which the split of the lattice is mended for absolute errors.
_ROUNDS = 6
# `adaptive` selects so many different marginals for each column, and they are the ones that say most: the part of what
# all say that is in them is their part of all to this power.
SELECTED, BY_CHOICE = 2.0, 0.3


@dataclass(frozen=True, slots=True, eq=False)
class Bought:
    """The precision of each block; the parts of what pairs, and what more columns, say that are known so well.

    `finer` is how many times as many selections are made as are planned for at first.
    """

    precision: Numbers
    pairs: float = 1.0
    deeper: float = 1.0
    finer: float = 1.0


def mixture(brief: Brief, rows: float) -> Bought:
    """Singles, pairs and small triples, as `pairs` splits its budget; all pairs are taken for equally far apart."""
    layers, units, goal = layers_of(brief.goal), float(brief.units), brief.goal
    shares = shares_of(goal, rows, units, public=is_public(brief.known))
    unclear = clarity(goal, rows, units) < FIT.clear_from
    importance = layers.summed(layers.weights[layers.rows]) ** MIXTURE.weight_power
    depth, found = layers.depth, precisions_known(layers, brief.known)
    pays = prices(layers, brief.known)
    alone, small = depth == 1, (depth == 3) & (layers.cells <= shares.room)
    for part, where, power in (
        (shares.total, depth == 0, 0.0),
        (shares.singles, alone, size_power(clarity(goal, rows, units))),
        (shares.pairs, depth == 2, MIXTURE.freedom_powers[unclear]),
        (shares.triples, small, MIXTURE.triple_freedom_power),
    ):
        if part > 0 and where.any():
            size = layers.cells if where is alone else layers.freedom
            wanted = (importance * size**power)[where]
            found[where] = fill_to_budget(wanted, pays[where], found[where], part * units)
    return Bought(found)


def selected(brief: Brief, rows: float, depth: int) -> Bought:
    """Singles, and the marginals of so many columns that `adaptive` would select: few, each known better."""
    layers, units = layers_of(brief.goal), float(brief.units)
    deep, found, pays = layers.depth, precisions_known(layers, brief.known), prices(layers, brief.known)
    sizes = layers.cells[deep == 1]
    clear = max(rows, 1.0) * units**0.5 / sizes.sum()
    possible = (deep == depth) & (deep > 1)
    single = min(1.0, adaptive.SINGLES * (1 + adaptive.SCARCE / clear)) if possible.any() else 1.0
    total = 0.0 if is_public(brief.known) else adaptive.TOTAL
    if total and (total * units) ** -0.5 > adaptive.WELL_KNOWN * rows:
        total += adaptive.MORE_TOTAL
    for part, where in ((total, deep == 0), (min(single, 1 - total), deep == 1)):
        if part > 0:
            found[where] = fill_to_budget(np.sqrt(layers.cells[where]), pays[where], found[where], part * units)
    left = (1 - adaptive.SELECTING) * (1 - min(1.0, single + total)) * units
    if left <= 0:
        return Bought(found)
    # As `adaptive` paces itself: more selections where a look has little noise.
    look = DEVIATIONS * np.median(layers.cells[deep == 2]) * (adaptive.ROUNDS * len(sizes) / left) ** 0.5 / rows
    finer = float(np.clip(adaptive.FINE / look, 1.0, adaptive.MOST_FINER))
    many = int(possible.sum())
    chosen = min(1.0, SELECTED * finer * len(sizes) / many)
    top = left / (many * chosen * float(moves_of(brief.known).l2_squared))
    # What a look at a marginal says of fewer of its columns; of its own ones, where it was selected.
    asked = np.array([len(scope) for scope in brief.goal.scopes])[layers.rows]
    told = layers.summed(np.where(asked == depth, chosen * top / layers.others, 0.0))
    lower = (deep > 1) & (deep < depth)
    found[lower] += told[lower]
    found[possible] = np.maximum(found[possible], top)
    part = chosen**BY_CHOICE
    return Bought(found, part if depth == 2 else 1.0, part if depth > 2 else 1.0, finer)


def marginals(brief: Brief, weights: Mapping[Columns, float], rows: float) -> Bought:
    """Some marginals, each measured whole, as `direct` splits its budget."""
    layers, known, goal = layers_of(brief.goal), brief.known, brief.goal
    power = 1 / (1 + known.rate)
    worth = {scope: (weight * goal.cells(scope)) ** power for scope, weight in weights.items()}
    every, moves = sum(worth.values()), moves_of(known)
    found = precisions_known(layers, known)
    for scope, each in worth.items():
        units = float(brief.units) * each / every
        variance = known.variance_for(moves, units)
        places = [layers.index[chosen] for chosen in subsets(scope)]
        found[places] += layers.cells[places] / (goal.cells(scope) * variance)
    return Bought(found)


def pieces(brief: Brief) -> Bought:
    """All pieces, as the lattice splits its budget so that absolute errors are least."""
    layers = layers_of(brief.goal)
    before, pays = precisions_known(layers, brief.known), prices(layers, brief.known)
    energy = layers.freedom[layers.places] / layers.others
    weights, found = layers.weights, before
    cells = np.array([float(layers.goal.cells(scope)) for scope in layers.goal.scopes])
    for _ in range(_ROUNDS):
        demand = layers.summed(energy * weights[layers.rows])
        wanted = np.sqrt(np.divide(demand, pays, out=np.zeros_like(demand), where=pays > 0))
        found = fill_to_budget(wanted, pays, before, float(brief.units))
        noise, known = np.zeros_like(energy), found[layers.places]
        # A column of one value has pieces without any energy, which nobody pays for.
        with np.errstate(divide="ignore"):
            np.divide(energy, known, out=noise, where=energy > 0)
        variance = np.bincount(layers.rows, weights=noise, minlength=len(cells))
        weights = layers.weights * np.sqrt(cells / np.maximum(variance, 1e-30))
    return Bought(found)


def prices(layers: Layers, known: Known) -> Numbers:
    """What a unit of precision of each block costs, in squared mu; nothing for a number of rows that is public."""
    found = layers.price * float(moves_of(known).l2_squared)
    found[0] = float(moves_of(known, cells=1).l2_squared)
    return found


def moves_of(known: Known, cells: int = 2) -> Sensitivity:
    """How far a person moves a marginal of so many cells."""
    return histogram_sensitivity(cells, known.lattice.unit, droppable=known.domain.drops)


def is_public(known: Known) -> bool:
    """Whether the number of rows is known exactly."""
    return total_of(known.lattice)[1] == 0
