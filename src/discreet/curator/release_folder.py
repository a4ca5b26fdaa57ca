"""A release as a folder of files: all that is needed to open it again, and only what is public.

What other analysts asked is not in it.
"""

import json
from base64 import b85decode, b85encode
from collections.abc import Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discreet.curator.release import Bill, Release
from discreet.curator.release_basis import Fitted, fitted_from_plain, fitted_to, fitted_to_plain
from discreet.errors import BadData, BadParameter, DiscreetError
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.laplace_estimator import LaplaceMarginals
from discreet.model.serialize import from_arrays, to_arrays
from discreet.release.report.card import Card
from discreet.release.report.release_page import Counted, page
from discreet.release.task import Forecast, Goal
from discreet.schema.schema import Schema
from discreet.schema.yaml.schema_file import read_schema, write_schema
from discreet.types import Numbers

# The form of the folder; a reader refuses a form that it does not know. The first form had every question that was
# asked of the table before; it is still read, and no longer written.
FOLDER_FORMAT, FIRST_FOLDER_FORMAT = "discreet release 2", "discreet release 1"
# The page shows pairs of at most this many cells, and searches at most this many pairs for the most dependent.
MOST_PAGE_CELLS, MOST_PAGE_PAIRS = 2**16, 1000
_FILES = ("release.json", "model.npz", "known.npz", "schema.yaml", "card.json", "card.html")


def save(release: Release, folder: str | PathLike[str], *, force: bool = False) -> None:
    """Write a release into a folder; the file that says that it is one comes last."""
    place = Path(folder)
    if not force and any((place / name).exists() for name in _FILES):
        raise BadParameter(f'"{place}" has a release already. Give another folder, or force=True to write over it.')
    plain, arrays = to_arrays(release.model)
    fitted, numbers = fitted_to_plain(release.fitted)
    said = {
        "form": FOLDER_FORMAT,
        "goal": [[list(columns), weight] for columns, weight in release.goal.weights],
        "describe": release.goal.describe,
        "forecast": asdict(release.forecast),
        "pure": release.known.accounting == "pure",
        "model": plain,
        "known": fitted,
        "own": [b85encode(record).decode() for record in release.fitted.own],
    }
    try:
        place.mkdir(parents=True, exist_ok=True)
        # Only the owner may know where the rows are.
        write_schema(replace(release.schema, source=None), place / "schema.yaml")
        with (place / "model.npz").open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        with (place / "known.npz").open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **numbers)
        (place / "card.json").write_text(release.card.to_json(), encoding="utf-8")
        (place / "card.html").write_text(page(release.card, *_pictures(release)), encoding="utf-8")
        (place / "release.json").write_text(json.dumps(said), encoding="utf-8")
    except OSError as error:
        raise BadParameter(f'"{place}" cannot be written: {error.strerror}. Give another folder.') from None


def _pictures(release: Release) -> tuple[Counted, Counted]:
    """What the page shows: all single columns, and pairs of columns of the goal."""
    domain = release.schema.domain
    names = sorted({name for scope in release.goal.scopes for name in scope})
    pairs = [scope for scope in release.goal.below if len(scope) == 2 and release.goal.cells(scope) <= MOST_PAGE_CELLS]

    def counted(columns: Sequence[str]) -> tuple[list[list[str]], Numbers]:
        return [list(domain[name].labels) for name in columns], release.marginal(columns)

    return {(name,): counted([name]) for name in names}, {pair: counted(pair) for pair in pairs[:MOST_PAGE_PAIRS]}


def load(folder: str | PathLike[str]) -> Release:
    """The release in a folder: it answers as it did when it was saved."""
    place = Path(folder)
    try:
        said = json.loads((place / "release.json").read_text(encoding="utf-8"))
        if said.get("form") not in (FOLDER_FORMAT, FIRST_FOLDER_FORMAT):
            raise BadData(f'"{place}" has the form {said.get("form")!r}; this version reads {FOLDER_FORMAT!r}.')
        return _read(place, said)
    except OSError as error:
        raise BadData(
            f'"{place}" has no release that can be read: {error.strerror}. Give a folder of `save`.'
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DiscreetError):
            raise
        raise BadData(f'"{place}" has a damaged release: {error}. Save it again.') from None


def _read(place: Path, said: dict[str, Any]) -> Release:
    schema = read_schema(place / "schema.yaml")
    card = Card.from_json((place / "card.json").read_text(encoding="utf-8"))
    weights = tuple((tuple(columns), float(weight)) for columns, weight in said["goal"])
    with np.load(place / "model.npz", allow_pickle=False) as arrays:
        model = from_arrays(said["model"], dict(arrays), schema.domain)
    bill = Bill(
        card.budget,
        card.spent,
        card.grains,
        card.cap,
        card.table_spent,
        card.earlier,
        card.entries,
        card.made,
    )
    goal = Goal(schema.domain, weights, said["describe"])
    fitted = _fitted(place, said, schema)
    known = fitted.known(schema)
    if said["form"] == FIRST_FOLDER_FORMAT:
        # It answers with all that it has; saved again, it leaves out the questions of others.
        fitted = fitted_to(known, goal)
    return Release(schema, goal, Forecast(**said["forecast"]), model, known, fitted, bill, card)


def _fitted(place: Path, said: dict[str, Any], schema: Schema) -> Fitted:
    if said["form"] == FIRST_FOLDER_FORMAT:
        return Fitted(
            LaplaceMarginals if said["pure"] else GaussianLattice,
            own=tuple(b85decode(text) for text in said["records"]),
        )
    with np.load(place / "known.npz", allow_pickle=False) as arrays:
        kept = (b85decode(text) for text in said["own"])
        return fitted_from_plain(said["known"], dict(arrays), kept, schema, said["pure"])
