"""What a row may be, and whom we protect."""

from discreet.schema.column import Bins, Boolean, Categories, Column, Integers
from discreet.schema.domain import Domain
from discreet.schema.schema import Schema
from discreet.schema.unit import Neighbors, Unit
from discreet.schema.yaml.schema_file import parse_schema, read_schema, schema_text, write_schema

__all__ = [
    "Bins",
    "Boolean",
    "Categories",
    "Column",
    "Domain",
    "Integers",
    "Neighbors",
    "Schema",
    "Unit",
    "parse_schema",
    "read_schema",
    "schema_text",
    "write_schema",
]
