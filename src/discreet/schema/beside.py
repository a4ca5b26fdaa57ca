"""The schema files of a folder, read together: one may say that another's people are also in its table."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from discreet.errors import BadSchema
from discreet.schema.file import file_text, parse_schema, read_schema
from discreet.schema.identity import people_groups
from discreet.schema.schema import Schema

_SUFFIXES = (".yaml", ".yml", ".json")
_WORD = "shares_people_with"
# Not in a comment: those begin a line, or come after a space.
_SAYS = re.compile(rf"""^(?!#)(?:(?!\s\#).)*?{_WORD}["']?\s*:""", re.MULTILINE)


def schemas_beside(path: Path) -> dict[Path, Schema]:
    """This schema; and all others of its folder that can be read, if any of them says that it shares people.

    One that says so and cannot be read is refused.
    """
    found, texts = {path: read_schema(path)}, {}
    try:
        files = sorted(path.parent.iterdir())
    except OSError:
        files = []
    for file in files:
        if file.suffix.lower() in _SUFFIXES and file.is_file() and not file.samefile(path):
            try:
                texts[file] = file_text(file)
            except BadSchema:
                continue
    if found[path].shares_people_with or any(_WORD in text for text in texts.values()):
        for file, text in texts.items():
            try:
                found[file] = parse_schema(text, name=file.name)
            except BadSchema as error:
                # No schema, or one that nobody can open: it is refused when somebody asks about it. But not if it
                # may say that people are shared: who it says share them would be asked on budgets of their own.
                if _SAYS.search(text):
                    raise BadSchema(
                        f"{file.name} beside {path.name} says {_WORD} and cannot be read: {error} Mend it, or move it "
                        "to another folder if it is no schema."
                    ) from error
    return found


def people_of(table: str, schemas: Mapping[Path, Schema]) -> frozenset[str]:
    """This table and all that share people with it, as these schemas say."""
    shares: dict[str, set[str]] = {}
    for each in schemas.values():
        shares.setdefault(each.table, set()).update(each.shares_people_with)
    return people_groups(shares).get(table, frozenset((table,)))


def read_with_people(path: Path) -> Schema:
    """The schema in a file, with every table that shares its people, also if only another schema beside it says so."""
    found = schemas_beside(path)
    schema = found[path]
    others = people_of(schema.table, found) - {schema.table}
    more = others - set(schema.shares_people_with)
    return replace(schema, shares_people_with=(*schema.shares_people_with, *sorted(more))) if more else schema
