"""What a release was fitted to: merged measurements of its own columns, and nothing of who asked for them, when or how.

A ledger keeps every question with its answer. A release needs less: an estimate and a precision of each residual of its
columns, the counts of marginals that were measured whole, and what it measured itself. The questions behind these
numbers are left out. Where delta is 0, the distribution of an error depends on every noise in it. There the release
keeps each marginal that was measured, summed over the columns that the release does not have; so the noise of each, and
how many there were, can be seen.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.records import Prints, from_bytes, learn
from discreet.estimate.estimator import DirectAnswer, Estimator
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.laplace_estimator import LaplaceMarginals
from discreet.estimate.laplace_marginal import MeasuredMarginal
from discreet.query.linear import Marginal
from discreet.release.task import Goal
from discreet.schema.schema import Schema
from discreet.types import Columns


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What was known of some columns when a release began, merged; and the records of what it measured itself.

    A block has its columns, the precision of each residual, and the estimates. A marginal that was measured whole (in
    `direct`) has its noise too.
    All are in the order of their columns, whatever the order in which they were learnt.
    """

    estimator: type[Estimator]
    blocks: tuple[tuple[Columns, NDArray[Any], NDArray[Any]], ...] = ()
    direct: tuple[tuple[Columns, DirectAnswer], ...] = ()
    wholes: tuple[MeasuredMarginal, ...] = ()
    own: tuple[bytes, ...] = ()

    def with_own(self, records: Iterable[bytes]) -> "Fitted":
        """The same, with what the release has measured itself."""
        return replace(self, own=(*self.own, *records))

    def known(self, schema: Schema) -> Estimator:
        """An estimator with all of it."""
        known = self.estimator.nothing(schema.domain, schema.unit)
        for columns, precision, values in self.blocks:
            block = known.lattice.blocks.setdefault(columns, known.lattice.block(columns))
            block.precision, block.values = precision.copy(), values.copy()
            block.version += 1
            known.lattice.version += 1
        known.direct_answers.update((Marginal(columns), direct) for columns, direct in self.direct)
        known.marginals.extend(self.wholes)
        known.version += 1
        prints = Prints(schema.domain)
        for record in self.own:
            released = from_bytes(record, schema.table, prints)
            if released is not None:
                learn(released, known)
        return known


def fitted_to(known: Estimator, goal: Goal) -> Fitted:
    """What a model of a goal's columns is fitted to (`release.fitting.joined`), of all that is known."""
    names = {name for scope in goal.scopes for name in scope}
    blocks = [
        (columns, block.precision.copy(), block.values.copy())
        for columns, block in known.lattice.blocks.items()
        if block.values is not None and names.issuperset(columns)
    ]
    direct = [
        (question.columns, found)
        for question, found in known.direct_answers.items()
        if isinstance(question, Marginal) and question.weight is None and names.issuperset(question.columns)
    ]
    # Wider marginals too: blocks have learnt from them, and their noise is in every estimate.
    wholes = [whole.within(names) for whole in known.marginals if whole.values is not None]
    return Fitted(
        type(known),
        tuple(sorted(blocks, key=lambda block: block[0])),
        tuple(sorted(direct, key=lambda each: each[0])),
        tuple(sorted(wholes, key=lambda whole: (whole.columns, whole.scale, whole.noises, _listed(whole.values)))),
    )


def fitted_to_plain(fitted: Fitted) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """For a file: plain values, and arrays by name."""
    arrays: dict[str, NDArray[Any]] = {}
    for place, (_, precision, values) in enumerate(fitted.blocks):
        arrays |= {f"precision{place}": precision, f"block{place}": values}
    arrays |= {f"told{place}": direct.values for place, (_, direct) in enumerate(fitted.direct)}
    arrays |= {f"whole{place}": np.asarray(whole.values) for place, whole in enumerate(fitted.wholes)}
    plain = {
        "blocks": [list(columns) for columns, _, _ in fitted.blocks],
        "told": [
            [list(columns), each.variance, _text(each.sigma), _text(each.scale)] for columns, each in fitted.direct
        ],
        "wholes": [[list(whole.columns), str(whole.scale), whole.noises] for whole in fitted.wholes],
    }
    return plain, arrays


def fitted_from_plain(
    plain: Any, arrays: dict[str, NDArray[Any]], own: Iterable[bytes], schema: Schema, pure: bool
) -> Fitted:
    """What `fitted_to_plain` wrote."""
    blocks = [
        (tuple(columns), arrays[f"precision{place}"], arrays[f"block{place}"])
        for place, columns in enumerate(plain["blocks"])
    ]
    direct = [
        (tuple(columns), DirectAnswer(arrays[f"told{place}"], float(variance), _fraction(sigma), _fraction(scale)))
        for place, (columns, variance, sigma, scale) in enumerate(plain["told"])
    ]
    wholes = [
        MeasuredMarginal(
            tuple(columns),
            Fraction(scale),
            arrays[f"whole{place}"],
            tuple(schema.domain[name].size for name in columns),
            int(noises),
        )
        for place, (columns, scale, noises) in enumerate(plain["wholes"])
    ]
    return Fitted(
        LaplaceMarginals if pure else GaussianLattice, tuple(blocks), tuple(direct), tuple(wholes), tuple(own)
    )


def _listed(values: NDArray[Any] | None) -> list[Any]:
    return [] if values is None else values.tolist()


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)
