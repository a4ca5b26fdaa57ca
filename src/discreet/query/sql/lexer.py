"""Messages for the analyst: what was found, shortened, and the next step.

The first check: a text as tokens, all of them known to our grammar. Nothing is parsed before it has passed.

Limits come first, so that a text of a megabyte or ten thousand brackets is refused at once. Then sqlglot's tokenizer
cuts the text into tokens, in its base dialect (standard SQL: 'text', "name", no backslashes). What it skips, such as a
comment, is refused, and so is every token and every pair of neighbours outside the grammar.
"""

import re
from collections.abc import Collection
from itertools import pairwise, takewhile

from sqlglot import Dialect, Token, TokenType
from sqlglot.errors import SqlglotError

from discreet.errors import BadQuery, TooLarge

SUPPORTED = (
    "Ask SELECT COUNT(*), SUM(x) or AVG(x) FROM one table, with WHERE, GROUP BY, HAVING, ORDER BY and LIMIT; "
    "see docs/sql.md."
)

_BINS = "Ask for counts per bin with GROUP BY instead; they show where the values lie."
_DAYS = "Write the day itself, say DATE '2024-01-01'."
_ONE = "Ask one SELECT at a time, of one table."
_WHERE = "Put the condition in WHERE, or ask per group with GROUP BY."
_VALUES = "Compare a column with a value: = <> < <= > >=, IN, BETWEEN, IS NULL."
_PLAIN = "Write the value itself into the statement."
_VALUE = "Ask for counts per value with GROUP BY instead."
_AGGREGATES = "The functions are COUNT, SUM and AVG."

# By word or sign: what to do instead.
_INSTEAD = {
    _BINS: "MIN MAX MEDIAN QUANTILE QUANTILE_CONT QUANTILE_DISC PERCENTILE_CONT PERCENTILE_DISC APPROX_QUANTILE MODE "
    "HISTOGRAM FIRST_VALUE LAST_VALUE ARG_MIN ARG_MAX ANY_VALUE",
    _DAYS: "TIMESTAMP TIMESTAMPTZ TIME DATETIME INTERVAL CURRENT_DATE CURRENT_TIMESTAMP CURRENT_TIME DATE NOW TODAY",
    _ONE: "SELECT UNION INTERSECT EXCEPT MINUS WITH JOIN INNER LEFT RIGHT FULL CROSS NATURAL LATERAL STRAIGHT_JOIN "
    "ASOF ANTI SEMI OUTER EXISTS ANY ALL SOME TABLE VALUES PIVOT UNPIVOT UNNEST INTO APPLY ON USING",
    _WHERE: "CASE WHEN THEN ELSE END OVER PARTITION WINDOW FILTER QUALIFY WITHIN IF IIF COALESCE NULLIF ROLLUP CUBE "
    "GROUPING TABLESAMPLE SAMPLE PREWHERE START CONNECT",
    _VALUES: "LIKE ILIKE RLIKE GLOB REGEXP SIMILAR ESCAPE COLLATE SYMMETRIC ISNULL NOTNULL DIV MOD XOR OVERLAPS "
    "+ - * / % ^ || && & | ~ ! == <=> -> ->> #> #>> @> <@ << >> [ ] { } ** // !~ ~* ~~ !~~",
    "Write DATE '2024-01-01', 12.5, TRUE or 'text', as the column holds it.": ":: CAST TRY_CAST CONVERT",
    _PLAIN: "? : $ @ := @@ #",
    "Ask one statement at a time, with at most one semicolon, at its end.": ";",
    SUPPORTED: "GROUP ORDER BY",
    "Write LIMIT n.": "OFFSET FETCH TOP",
    _VALUE: "DISTINCT DISTINCTROW APPROX_COUNT_DISTINCT COUNT_IF COUNTIF COUNT_DISTINCT STDDEV STDDEV_POP STDDEV_SAMP "
    "VARIANCE VAR_POP VAR_SAMP CORR COVAR_POP COVAR_SAMP",
}
_ADVICE = {word: advice for advice, words in _INSTEAD.items() for word in words.split()}


def advice(word: str) -> str | None:
    """The next step for a word or sign that is in SQL and not in our grammar.

    >>> advice("offset")
    'Write LIMIT n.'
    """
    return _ADVICE.get(word.upper())


def unsupported(found: str, *, function: bool = False) -> BadQuery:
    """The refusal of a word, sign or function."""
    what = f"the function {excerpt(found)}" if function else excerpt(found)
    next_step = advice(found.partition(" ")[0]) or advice(found[:1]) or (_AGGREGATES if function else SUPPORTED)
    return BadQuery(f"{what} is not supported. {next_step}")


def excerpt(text: str) -> str:
    """A part of the statement between quotes, cut to fit a message, with odd characters written out.

    >>> excerpt("café\\u200b" + "x" * 1000)
    '"café\\\\u200bxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"'
    """
    cut = text if len(text) <= 40 else text[:40] + "…"
    return '"' + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut) + '"'


MOST_SQL_CHARACTERS = 16 * 1024
MOST_TOKENS = 1000
# Brackets and NOTs, one in another. The parser needs some 20 frames for each and Python has 1000.
MOST_SQL_NESTING = 24
MOST_SQL_DIGITS = 40

# About one match for each word, without making any.
_WORDS = re.compile(r"""'[^']*'|"[^"]*"|\w+|[<>=!]+|[^\w\s]""")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
_FUNCTIONS = ("COUNT", "SUM", "AVG")

T = TokenType
_COMPARISONS = {T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE}
_CLAUSES = [T.SELECT, T.FROM, T.WHERE, T.GROUP_BY, T.HAVING, T.ORDER_BY, T.LIMIT]
_LOGIC = {T.AND, T.OR, T.NOT, T.IN, T.BETWEEN, T.IS}
_NAMES = {T.VAR, T.IDENTIFIER}
_CONSTANTS = {T.NULL, T.TRUE, T.FALSE}
_OPERANDS = {*_NAMES, *_CONSTANTS, T.NUMBER, T.STRING, T.R_PAREN}
_SIGNS = {T.L_PAREN, T.R_PAREN, T.COMMA, T.DOT, T.STAR, T.DASH}
_STARTS = {*_NAMES, *_CONSTANTS, T.NUMBER, T.STRING, T.DASH, T.DATE, T.L_PAREN, T.STAR}
# What may follow a word that cannot be the last one.
_FOLLOWED = {
    **{kind: {*_STARTS, T.NOT} for kind in (*_CLAUSES, *_COMPARISONS, *_LOGIC)},
    T.FROM: _NAMES,
    T.ALIAS: _NAMES,
    T.NOT: {*_STARTS, T.NOT, T.IN, T.BETWEEN},
}
_KEPT = {*_COMPARISONS, *_CLAUSES, *_LOGIC, *_OPERANDS, *_SIGNS, T.ALIAS, T.ASC, T.DESC} - {T.VAR}

# What these words may be called in other dialects.
_ONLY_SPELLED = {T.EQ: ("=",), T.NEQ: ("<>", "!="), T.NOT: ("NOT",), T.AND: ("AND",), T.OR: ("OR",)}


def tokens_of(text: str, known: Collection[str], *, select: bool) -> list[Token]:
    """The words of a SELECT, without its last semicolon, or of a condition.

    `known` are the names of columns and tables: they are names even where SQL has another use for the word.

    >>> [word.text for word in tokens_of("age >= 65", ["age"], select=False)]
    ['age', '>=', '65']
    """
    _check_text(text)
    try:
        words = Dialect.get_or_raise(None).tokenize(text)
    except SqlglotError:
        raise BadQuery(
            "a quote or a comment is opened and not closed. Double a quote inside a text: 'it''s'."
        ) from None
    _check_start(text, words, select)
    _check_between(text, words)
    if select and words[-1].token_type is T.SEMICOLON:
        words.pop()
    words = _named(text, words, {name.upper() for name in known})
    _check_words(words)
    _check_clauses(words)
    _check_nesting(words)
    return words


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise BadQuery(f"a statement is a text, not a {type(text).__name__}. {SUPPORTED}")
    if len(text) > MOST_SQL_CHARACTERS:
        raise TooLarge(
            f"the statement has {len(text):,} characters; the limit is {MOST_SQL_CHARACTERS:,}. "
            "Ask in several statements."
        )
    if "\0" in text:
        raise BadQuery("the statement has a NUL character. Remove it.")
    many = sum(1 for _ in _WORDS.finditer(text))
    if many > MOST_TOKENS:
        raise TooLarge(
            f"the statement has about {many:,} words and signs; the limit is {MOST_TOKENS:,}. "
            "Ask in several statements."
        )


def _check_start(text: str, words: list[Token], select: bool) -> None:
    if not words:
        _check_gap(text)
        raise BadQuery(f"the statement is empty. {SUPPORTED}")
    raw = text[words[0].start : words[0].end + 1]
    _check_ascii(raw if words[0].token_type not in (T.STRING, T.IDENTIFIER) else "")
    if select and words[0].token_type is not T.SELECT:
        raise BadQuery(f"the statement starts with {excerpt(raw)}. {SUPPORTED}")
    if not select and words[0].token_type is T.SELECT:
        raise BadQuery("give the condition alone, without SELECT. Write what follows WHERE, say age >= 65.")


def _check_between(text: str, words: list[Token]) -> None:
    """Refuse what the tokenizer passes over, and every character outside of quotes that is not plain ASCII."""
    end = 0
    for word in words:
        _check_gap(text[end : word.start])
        end = word.end + 1
        if word.token_type is T.IDENTIFIER and not word.text.isprintable():
            raise BadQuery(f"the name {excerpt(word.text)} has an invisible character. Remove it.")
        if word.token_type not in (T.STRING, T.IDENTIFIER):
            _check_ascii(text[word.start : end])
    _check_gap(text[end:])


def _check_gap(gap: str) -> None:
    if not gap.strip(" \t\r\n"):
        return
    _check_ascii(gap)
    raise BadQuery("the statement has a comment, and comments are not supported. Remove it.")


def _check_ascii(piece: str) -> None:
    for char in piece:
        if not (" " <= char <= "~" or char in "\t\r\n"):
            raise BadQuery(
                f"the statement has the character {excerpt(char)} (U+{ord(char):04X}) outside of quotes. "
                'Type plain letters and digits, or put a name with other letters in "double quotes".'
            )


def _named(text: str, words: list[Token], known: set[str]) -> list[Token]:
    """The words with every name a VAR, so that a column may be called "date" or "first" without quotes."""
    items = takewhile(lambda word: word.token_type is not T.FROM, words)
    known |= {after.text.upper() for before, after in pairwise(items) if before.token_type is T.ALIAS}
    named = []
    for word, after in pairwise([*words, Token(T.SENTINEL, "")]):
        # The text of a word is not always what was written: that of N'x' is x.
        kind, raw = word.token_type, text[word.start : word.end + 1]
        if kind in _KEPT or (kind is T.DATE and after.token_type is T.STRING):
            named.append(word)
        elif not _NAME.fullmatch(raw) or (raw.upper() not in known and _refused(word, after)):
            raise unsupported(raw, function=after.token_type is T.L_PAREN and raw.isidentifier())
        else:
            named.append(Token(T.VAR, word.text, word.line, word.col, word.start, word.end))
    return named


def _refused(word: Token, after: Token) -> bool:
    if after.token_type is T.L_PAREN:
        return word.text.upper() not in _FUNCTIONS
    return advice(word.text) is not None


def _check_words(words: list[Token]) -> None:
    edge = Token(T.SENTINEL, "")
    for before, word, after in zip([edge, *words], words, [*words[1:], edge], strict=False):
        match word.token_type:
            case T.SELECT if before is not edge:
                raise BadQuery(
                    "a SELECT inside of a statement is not supported. Ask one SELECT at a time, of one table."
                )
            case T.NUMBER:
                _check_number(word, before, after)
            case T.STRING if before.token_type in (T.ALIAS, T.FROM):
                raise BadQuery(f'the name {excerpt(word.text)} is in single quotes. Put names in "double quotes".')
            case T.STRING | T.NULL | T.TRUE | T.FALSE if before.token_type in _OPERANDS:
                raise BadQuery(f"{excerpt(word.text)} follows {excerpt(before.text)} directly. {SUPPORTED}")
            case T.DASH if after.token_type is not T.NUMBER or before.token_type in _OPERANDS:
                raise unsupported("-")
            case T.STAR if not (before.token_type is T.L_PAREN and after.token_type is T.R_PAREN):
                raise BadQuery(f'"*" is supported in COUNT(*) only, because rows are never shown. {SUPPORTED}')
            case T.DOT if not {before.token_type, after.token_type} <= {*_NAMES, T.STAR}:
                raise BadQuery('a "." may only be between two names. Write 0.5 for a half, and table.column.')
            case T.COMMA if before.token_type not in {*_OPERANDS, T.ASC, T.DESC} or after.token_type not in _STARTS:
                raise BadQuery(f"the comma after {excerpt(before.text)} separates nothing. Remove it.")
            case T.L_PAREN:
                _check_call(before, after)
            case T.VAR if word.text.upper() == "NULLS" and after.text.upper() in ("FIRST", "LAST"):
                raise BadQuery(
                    "NULLS FIRST and NULLS LAST are not supported; rows without a value come last. Leave it out."
                )
            case kind if word.text.upper() not in _ONLY_SPELLED.get(kind, (word.text.upper(),)):
                raise unsupported(word.text)


def _check_number(word: Token, before: Token, after: Token) -> None:
    beside = after.token_type is T.VAR and after.start == word.end + 1
    if beside or not _NUMBER.fullmatch(word.text) or len(word.text) > MOST_SQL_DIGITS:
        raise BadQuery(
            f"{excerpt(word.text + after.text * beside)} is not a number here. Write it in digits, say 12 or -0.5, "
            f"at most {MOST_SQL_DIGITS}."
        )
    if before.token_type in _OPERANDS:
        raise BadQuery(f"the number {excerpt(word.text)} follows {excerpt(before.text)} directly. {SUPPORTED}")


def _check_call(before: Token, after: Token) -> None:
    if before.token_type in _NAMES and not (before.token_type is T.VAR and before.text.upper() in _FUNCTIONS):
        raise unsupported(before.text, function=True)
    if before.token_type in _OPERANDS - _NAMES:
        raise BadQuery(f"a bracket is opened right after {excerpt(before.text)}. {SUPPORTED}")
    if after.token_type is T.R_PAREN:
        raise BadQuery(f'there is nothing between "(" and ")". {SUPPORTED}')


def _check_clauses(words: list[Token]) -> None:
    """Each clause once, in order, with something in it: the parser takes them in any order, even empty.

    And no word of the grammar is a name: the parser would take COUNT(*) IS for a count that is named IS.
    """
    last = -1
    for word, after in pairwise([*words, Token(T.SENTINEL, "")]):
        if word.token_type in _CLAUSES:
            place = _CLAUSES.index(word.token_type)
            if place <= last:
                raise BadQuery(f"{word.text.upper()} is there twice or too late in the statement. {SUPPORTED}")
            last = place
        elif word.token_type in (T.ASC, T.DESC) and last != _CLAUSES.index(T.ORDER_BY):
            raise BadQuery(f"{word.text.upper()} is outside of ORDER BY in the statement. {SUPPORTED}")
        if word.token_type in _FOLLOWED and after.token_type not in _FOLLOWED[word.token_type]:
            raise BadQuery(f"there is nothing fitting after {word.text.upper()} in the statement. {SUPPORTED}")


def _check_nesting(words: list[Token]) -> None:
    depth, pending = 0, 0
    opened: list[int] = []
    for word in words:
        match word.token_type:
            case T.NOT:
                pending += 1
            case T.L_PAREN:
                opened.append(pending + 1)
                depth, pending = depth + pending + 1, 0
            case T.R_PAREN if opened:
                depth, pending = depth - opened.pop(), 0
            case _:
                pending = 0
        if depth + pending > MOST_SQL_NESTING:
            raise TooLarge(
                f"brackets and NOTs are nested more than {MOST_SQL_NESTING} deep. "
                "Write the condition with fewer of them."
            )
