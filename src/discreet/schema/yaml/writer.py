"""A column as the text of a schema file."""

import re
from datetime import date
from fractions import Fraction

from discreet.errors import BadSchema
from discreet.schema.unit import Unit
from discreet.schema.yaml.partial_column import PartialColumn
from discreet.schema.yaml.yaml_tree import BLANK, MOST_SCHEMA_DIGITS, resolve
from discreet.values import Readable, plain, read_value

LINE_WIDTH = 120

# A text that needs no quotes: words, with nothing in them that means something to YAML.
_BARE = re.compile(r"(\.{0,2}/)*[^\W\d]\w*([ ./+-]+\w+)*")
# Texts in YAML 1.2, and something else to readers of YAML 1.1: better in quotes.
_SURPRISING = {"yes", "no", "on", "off", "y", "n", BLANK}
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def quoted(text: str) -> str:
    """A text as YAML writes it: bare where nobody could read it as something else, in double quotes otherwise.

    >>> print(quoted("Female"), quoted("true"), quoted("2024-01-01"), quoted("a: b"), quoted(""))
    Female "true" "2024-01-01" "a: b" ""
    """
    if _BARE.fullmatch(text) and text.lower() not in _SURPRISING and isinstance(resolve(text), str):
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 2**16 else f"\\U{ord(letter):08x}"


def scalar(value: Readable) -> str:
    """A value as YAML writes it.

    >>> print(scalar(0.5), scalar(True), scalar(date(2024, 1, 1)), scalar("1"))
    0.5 true 2024-01-01 "1"
    """
    kind, number = read_value(plain(value))
    match kind:
        case "text":
            return quoted(number)
        case "boolean":
            return "true" if number else "false"
        case "date":
            return date.fromordinal(number).isoformat()
        case _:
            return _decimal(Fraction(number))


def _decimal(number: Fraction) -> str:
    """The digits of a number that has finitely many."""
    places, rest = 0, number.denominator
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    digits = abs(number.numerator) * 10**places // number.denominator
    if rest != 1 or digits >= 10**MOST_SCHEMA_DIGITS:
        raise BadSchema(
            f"the number {float(number):g} has more than {MOST_SCHEMA_DIGITS} digits, and a file has decimals only. "
            "Round it."
        )
    whole, part = divmod(digits, 10**places)
    return f"{'-' * (number < 0)}{whole}" + (f".{part:0{places}d}" if places else "")


def key(name: str) -> str:
    """A name before its value. YAML finds the colon only within 1,024 characters, unless a question mark says where."""
    text = quoted(name)
    return f"{text}:" if len(text) < 1_000 else f"? {text}\n  :"


def settings(sketch: PartialColumn) -> dict[str, str | list[str]]:
    """The settings of a column as texts and lists of texts, with blanks for what is still to be said.

    >>> settings(PartialColumn("number", lower=0, upper=1))
    {'type': 'number', 'bins': ['0', '___'], 'upper': '1'}
    """
    gaps = sketch.gaps
    said: dict[str, str | list[str]] = {} if sketch.values is not None else {"type": sketch.kind or BLANK}
    if sketch.values is not None or "values" in gaps:
        said["values"] = [*map(scalar, sketch.values or ()), *[BLANK] * ("values" in gaps)]
    elif sketch.bins is not None or "bins" in gaps:
        start = () if sketch.lower is None else (sketch.lower,)
        said["bins"] = [*map(scalar, sketch.bins or start), *[BLANK] * ("bins" in gaps)]
        said["upper"] = _or_blank(sketch.upper)
    elif sketch.kind == "integer":
        said |= {"lower": _or_blank(sketch.lower), "upper": _or_blank(sketch.upper)}
    rules = {"ordered": sketch.ordered or None, "outside": sketch.outside, "missing": sketch.missing}
    return said | {name: scalar(rule) for name, rule in rules.items() if rule is not None}


def _or_blank(value: Readable | None) -> str:
    return BLANK if value is None else scalar(value)


def flow_list(texts: list[str]) -> str:
    """A list on one line."""
    return f"[{', '.join(texts)}]"


def entry(name: str, sketch: PartialColumn) -> str:
    """The entry of a column under `columns`: on one line if it fits.

    >>> print(entry("sex", PartialColumn(values=("Female", "Male"))))
      sex: {values: [Female, Male]}
    """
    if sketch == PartialColumn():
        return f"  {key(name)} {BLANK}"
    said = settings(sketch)
    flat = {setting: text if isinstance(text, str) else flow_list(text) for setting, text in said.items()}
    line = f"  {key(name)} {{{', '.join(f'{setting}: {text}' for setting, text in flat.items())}}}"
    if len(line) <= LINE_WIDTH:
        return line
    return "\n".join([f"  {key(name)}", *(f"    {setting}: {_wrapped(said[setting])}" for setting in said)])


def _wrapped(text: str | list[str]) -> str:
    """A long list on several lines."""
    if isinstance(text, str) or len(flow_list(text)) < LINE_WIDTH - 16:
        return text if isinstance(text, str) else flow_list(text)
    lines = [""]
    for item in text:
        if lines[-1] and len(lines[-1]) + len(item) > LINE_WIDTH - 8:
            lines.append("")
        lines[-1] += f"{item}, "
    return "\n      ".join(["[", *(line.rstrip() for line in lines), "]"])


def unit_lines(unit: Unit) -> list[str]:
    """Whom we protect, as lines of a schema file.

    >>> unit_lines(Unit("person_id", contributions=3))
    ['privacy_unit: person_id', 'contributions: 3', 'neighbors: add_remove']
    """
    key = "row" if unit.key is None else quoted(unit.key)
    # A column may be called row.
    named = f"{{column: {key}}}" if unit.key is not None and unit.key.lower() in ("row", "rows") else key
    contributions = [] if unit.key is None else [f"contributions: {unit.contributions}"]
    return [f"privacy_unit: {named}", *contributions, f"neighbors: {unit.neighbors}"]
