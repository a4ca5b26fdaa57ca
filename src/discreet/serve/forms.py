"""The JSON of requests and replies: validates requests, and describes both in the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# The most characters of a name, a key or a text to search for.
LONG = 200

QuestionJson = Annotated[
    str | dict[str, Any],
    Field(
        description="SQL, or a condition as after WHERE; or a JSON query: "
        '{"where": CONDITION}, {"select": [...], "where": ..., "group_by": [...]} or {"columns": [...]}. '
        'A CONDITION is {"column": "age", "is": ">=", "value": 65}, {"column": "sex", "in": [...]}, '
        '{"and": [...]}, {"or": [...]} or {"not": ...}.',
        examples=["SELECT COUNT(*) FROM people WHERE age >= 65"],
    ),
]


class Form(BaseModel):
    """A request. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class AccuracyForm(Form):
    """The accuracy of an answer, or its price; with neither, nothing is paid."""

    error: float | None = Field(None, description="The half-width that the answer may have.")
    confidence: float = Field(0.95, description="How often the error must hold.")
    epsilon: float | None = Field(None, description="Instead of an error: what the answer may cost.")
    joint: bool = Field(False, description="All errors of a GROUP BY hold together.")


class PlanForm(AccuracyForm):
    """A question, to be planned."""

    question: QuestionJson


class AskForm(PlanForm):
    """A question, to be answered."""

    nonnegative: bool = Field(False, description="Lift what is below zero to zero.")
    analyst: str | None = Field(None, description="Who asks; it must be the name of the token.")


class AskManyForm(Form):
    """Questions that are planned together and paid at once."""

    questions: list[QuestionJson] = Field(min_length=1, max_length=2_048)
    error: float
    confidence: float = 0.95
    analyst: str | None = None


class ReleasePlanForm(Form):
    """A workload and a budget, to be planned."""

    workload: dict[str, Any] = Field(
        description='{"marginals": 2, "of": ["age", "sex"]}, {"prefixes": "age"}, {"questions": [...]}, ...'
    )
    epsilon: float = Field(description="What the release may cost.")
    delta: float | None = Field(None, description="The probability that more leaks; that of the table, if left out.")
    seconds: float | None = None
    memory: float | None = None
    rows: float | None = Field(None, description="About how many rows there are, if nothing is known of it.")


class ReleaseForm(Form):
    """A workload and a budget, to be released. Without an epsilon all that is left is used."""

    workload: dict[str, Any]
    epsilon: float | None = None
    delta: float | None = None
    method: str = "auto"
    seconds: float | None = None
    memory: float | None = None
    analyst: str | None = None


class CapForm(Form):
    """A cap: of one analyst, of each ("*"), or of all together if no analyst is named. A higher one raises it."""

    epsilon: float
    delta: float = 0.0
    gate: Literal["pure", "gaussian", "renyi"] | None = None
    analyst: str | None = None


class TokenForm(Form):
    """A new token."""

    name: str
    role: str
    days: float | None = Field(None, description="Days until it expires; without it, never.")


class BudgetReply(BaseModel):
    """An epsilon at a delta."""

    epsilon: float
    delta: float
    gate: str | None


class AnswerReply(BaseModel):
    """A private answer: the true value is within `error` of `value` with probability `confidence`."""

    value: Any
    error: Any
    confidence: float
    origin: str
    columns: dict[str, list[Any]]
    errors: list[str]
    shape: Literal["number", "array", "several"]
    cost: dict[str, Any]
    neighbors: str
    remaining: BudgetReply | None
    price: float = Field(
        description="What was paid for it and what was asked with it: an epsilon at the table's delta."
    )
    text: str


class PlanReply(BaseModel):
    """What a question would cost. Nothing was read and nothing was spent."""

    question: str
    error: float | None
    confidence: float
    origin: str
    cost: dict[str, Any]
    price: BudgetReply
    fits: bool
    free: bool
    note: str
    pieces: int
    share: float = Field(description="The part of the table's cap that it costs, in the currency that adds up.")
    text: str


class Problem(BaseModel):
    """An error (RFC 9457): `detail` is the sentence, `error` the name of the Python error."""

    type: str
    title: str
    status: int
    error: str
    detail: str
