"""The maximum-entropy fit: Gauss–Newton steps on the loss, held back by the relative entropy.

The log-potentials are Bᵀν, so of all distributions with its marginals the model has the largest entropy. A step solves

    (n B C Bᵀ + δ) ν = −(B μ − b)

by conjugate gradients, where C is the covariance of the cells under the model (one walk of `passes.differentiate`).
It minimises the linearised loss plus δ times the relative entropy to the present model: for large δ it is mirror
descent, for small δ Newton's method, and δ follows what the last step achieved (Levenberg–Marquardt).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.model.evidence import Evidence
from discreet.model.layout import Layout
from discreet.model.passes import message_passes
from discreet.types import Numbers


@dataclass(frozen=True, slots=True)
class FitTuning:
    """Set by hand; no sweep is recorded. bench/tree.py measures how long fits take with them."""

    # Conjugate gradients solve a step to this part of what it would gain, in at most this many walks.
    solve_tolerance: float = 0.1
    solve_walks: int = 60
    # The damping δ is multiplied or divided by this.
    damping_factor: float = 2.0
    # Line search: a step that gains less than this part of its forecast is multiplied by `shrink`, down to `shortest`.
    sufficient_gain: float = 0.1
    shrink: float = 0.4
    shortest: float = 1e-3
    # A step that gains more than this part of its forecast lowers the damping.
    good_gain: float = 0.6
    # The fit ends after this many forecasts in a row of too little to gain.
    patience: int = 2
    # The farthest that a residual of one standard deviation moves a logarithm in a step.
    farthest: float = 5.0


FIT = FitTuning()


@dataclass(frozen=True, eq=False)
class Fit:
    """Potentials on the cells of the scopes, the tables they make, the loss, and whether the steps came to an end."""

    potentials: Numbers
    directed: Numbers
    beliefs: Numbers
    loss: float
    converged: bool
    steps: int


class _State(NamedTuple):
    potentials: Numbers
    directed: Numbers
    beliefs: Numbers
    residual: Numbers
    loss: float


class _Walker:
    """The kernels with their workspace."""

    def __init__(self, layout: Layout, evidence: Evidence) -> None:
        self.walk = layout.walk
        cells, messages = layout.cells, int(layout.walk.shared[-1])
        self.logs, self.messages = np.empty(cells), np.empty(messages)
        self.change, self.shares = np.empty(cells), np.empty(messages)
        # Where the cells of each scope lie among those of the nodes.
        nodes = [layout.places[scope] for scope in evidence.scopes]
        self.where = np.concatenate(
            [np.arange(layout.walk.start[node], layout.walk.start[node + 1]) for node in nodes] or [np.zeros(0, int)]
        )
        self._direct, self._spread, self._differentiate = message_passes()

    def tables(self, potentials: Numbers) -> tuple[Numbers, Numbers]:
        """Conditionals and marginals."""
        self.logs[:] = 0.0
        self.logs[self.where] = potentials
        directed, beliefs = np.empty_like(self.logs), np.empty_like(self.logs)
        self._direct(self.walk, self.logs, directed, self.messages)
        self._spread(self.walk, directed, beliefs, self.shares)
        return directed, beliefs

    def covary(self, directed: Numbers, beliefs: Numbers, potentials: Numbers) -> Numbers:
        """How the marginals of the scopes change with the potentials."""
        self.logs[:] = 0.0
        self.logs[self.where] = potentials
        self._differentiate(self.walk, directed, beliefs, self.logs, self.messages, self.change, self.shares)
        return np.asarray(self.change[self.where])


def fit(layout: Layout, evidence: Evidence, total: float, potentials: Numbers, *, steps: int, tolerance: float) -> Fit:
    """Steps until the next is forecast to gain too little: tolerance²/2 for each number that was measured.

    The loss is ½‖Bμ − b‖², so what is left to gain bounds ½‖B(μ − μ*)‖²: at the end the residuals are, in root mean
    square, about `tolerance` standard deviations of their noise from where they would come to rest.
    """
    walker = _Walker(layout, evidence)

    def state(potentials: Numbers) -> _State:
        directed, beliefs = walker.tables(potentials)
        residual = total * evidence.measure(beliefs[walker.where]) - evidence.wanted
        return _State(potentials, directed, beliefs, residual, 0.5 * float(residual @ residual))

    # Until a step had to be cut, δ falls fast: a warm start is near the end.
    now, damping, easing = state(potentials), 0.0, FIT.damping_factor**2
    enough = 0.5 * tolerance**2 * evidence.wanted.size
    # With δ no less than this, a residual of one deviation moves no logarithm further than `farthest` in a step: cells
    # that are measured below zero get rare, and not so rare that later looks could not bring them back.
    least = evidence.steepest / FIT.farthest
    quiet, taken = 0 if evidence.wanted.size else FIT.patience, 0
    while taken < steps and quiet < FIT.patience:
        taken += 1
        curved = _curvature(walker, evidence, total, now)
        damping = damping or _stiffness(curved, now.residual)
        numbers, image = _solve(curved, -now.residual, damping)
        tried, length, forecast = _try(state, now, evidence.back(numbers), image)
        gained = now.loss - tried.loss
        if length < 1.0 or gained <= 0:
            damping, easing = damping * FIT.damping_factor, FIT.damping_factor
        elif gained > FIT.good_gain * forecast:
            damping = max(damping / easing, least)
        # What rounding leaves is not to be gained.
        quiet = quiet + 1 if forecast <= max(enough, 1e-13 * now.loss) else 0
        if gained > 0:
            now = tried
    return Fit(now.potentials, now.directed, now.beliefs, now.loss, quiet == FIT.patience, taken)


def _stiffness(curved: Callable[[Numbers], Numbers], residual: Numbers) -> float:
    """The size of H along the residual, to begin with as δ."""
    image = curved(residual)
    along = float(image @ residual)
    return float(image @ image) / along if along > 0 else 1.0


def _curvature(walker: _Walker, evidence: Evidence, total: float, now: _State) -> Callable[[Numbers], Numbers]:
    """H = n B C Bᵀ at a state: how the measured numbers move with ν."""

    def curved(numbers: Numbers) -> Numbers:
        return total * evidence.measure(walker.covary(now.directed, now.beliefs, evidence.back(numbers)))

    return curved


def _try(state: Callable[[Numbers], _State], now: _State, step: Numbers, image: Numbers) -> tuple[_State, float, float]:
    """The state after a step, cut until it gains a good part of its forecast; its length; the forecast of all of it."""
    length, whole = 1.0, now.loss - 0.5 * float(np.sum((now.residual + image) ** 2))
    while True:
        forecast = now.loss - 0.5 * float(np.sum((now.residual + length * image) ** 2))
        tried = state(now.potentials + length * step)
        if now.loss - tried.loss >= FIT.sufficient_gain * forecast or length < FIT.shortest:
            return tried, length, whole
        length *= FIT.shrink


def _solve(curved: Callable[[Numbers], Numbers], wanted: Numbers, damping: float) -> tuple[Numbers, Numbers]:
    """ν with (H + δ) ν = wanted, nearly, and H ν: conjugate gradients in the inner product of H.

    What no distribution can fit (a look's total, the contradictions between looks) is in the null space of H; in this
    product it has no length, so it neither hides what is left to do nor keeps the steps going.
    """
    found, image = np.zeros_like(wanted), np.zeros_like(wanted)
    left = wanted.copy()
    bent = curved(left)
    direction, ahead = left.copy(), bent.copy()
    size = float(left @ bent)
    enough = size * FIT.solve_tolerance**2
    for _ in range(FIT.solve_walks):
        if size <= enough or size <= 0.0:
            break
        pace = size / (float(ahead @ ahead) + damping * float(direction @ ahead))
        found += pace * direction
        image += pace * ahead
        left -= pace * (ahead + damping * direction)
        bent = curved(left)
        before, size = size, float(left @ bent)
        ratio = size / before
        direction = left + ratio * direction
        ahead = bent + ratio * ahead
    return found, image
