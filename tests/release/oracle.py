"""Who answers the requests of a procedure in tests: from codes, with numpy's noise. Real ones: `procedures`."""

from fractions import Fraction
from math import prod

import numpy as np

from discreet.accounting.filter import loss
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.plan.plan import Distances, Measure


class Oracle:
    """Answers requests from codes, with numpy's noise; or repeats what another one said. It keeps the account."""

    def __init__(self, domain, rows, unit, *, seed=0, first=None, known=None):
        self.domain, self.rows, self.unit = domain, rows, unit
        self.known = GaussianLattice.nothing(domain, unit) if known is None else known
        self.rng, self.first = np.random.default_rng(seed), first
        self.requests, self.said, self.spent, self.counted = [], [], Fraction(0), {}

    def __call__(self, request):
        said = self._say(request) if self.first is None else self.first.said[len(self.requests)]
        self.requests.append(request)
        self.said.append(said)
        self.spent += loss(request.event(self.domain, self.unit))
        if not isinstance(request, Measure):
            return said
        for step, values in zip(request.steps.steps, said, strict=True):
            self.known.learn(step, values)
        return 0

    def _say(self, request):
        if isinstance(request, Measure):
            return [self._looked(step.measurement) for step in request.steps.steps]
        far = np.array(
            [
                np.abs(self.marginal(scope).ravel() - middle).sum()
                for scope, middle in zip(request.scopes, request.expected, strict=True)
            ]
        )
        if isinstance(request, Distances):
            return np.rint(far + float(request.sigma) * self.rng.normal(size=len(far))).astype(np.int64)
        return self.chosen_of(far - np.array(request.handicaps), float(request.epsilon))

    def chosen_of(self, scores, epsilon):
        """One of the best, by the exponential mechanism."""
        moves = self.unit.contributions * (2 if self.unit.neighbors == "replace_one" else 1)
        return int(np.argmax(scores * epsilon / (2 * moves) + self.rng.gumbel(size=len(scores))))

    def _looked(self, measurement):
        found = []
        for residual, sigma in measurement.pieces:
            true = residual.measure(self.marginal(residual.columns), self.domain)
            found.append(np.rint(true + float(sigma) * self.rng.standard_normal(true.shape)).ravel())
        return np.concatenate(found).astype(np.int64)

    def marginal(self, scope):
        if scope not in self.counted:
            self.counted[scope] = self._counted(scope)
        return self.counted[scope]

    def _counted(self, scope):
        shape = tuple(self.domain[name].size for name in scope)
        codes = np.zeros(len(next(iter(self.rows.values()))), dtype=np.int64)
        for name, size in zip(scope, shape, strict=True):
            codes = codes * size + self.rows[name]
        return np.bincount(codes, minlength=prod(shape)).reshape(shape)
