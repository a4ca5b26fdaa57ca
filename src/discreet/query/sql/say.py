"""Messages for the analyst: what was found, cut to a short piece, and the next step."""

from discreet.errors import BadQuery

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
    """A piece of the statement between quotes, cut to fit a message, with odd characters written out.

    >>> excerpt("café\\u200b" + "x" * 1000)
    '"café\\\\u200bxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"'
    """
    cut = text if len(text) <= 40 else text[:40] + "…"
    return '"' + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut) + '"'
