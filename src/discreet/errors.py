"""Every error that Discreet raises.

    DiscreetError
    ├── Refusal             the request is well formed; the answer is no
    │   ├── BudgetExceeded      it would cost more than is left
    │   ├── AnswerLost          it was charged under this key before, and no answer was kept
    │   ├── TableChanged        its rows or its version are no longer those in the ledger
    │   ├── TooLarge            it would need more memory or time than allowed
    │   ├── NotAllowed          this user may not do it, or is not known
    │   └── TooMany             more requests than are served in this time
    ├── Mistake             something the caller can put right (also a ValueError)
    │   ├── BadParameter        a number out of its range: epsilon, delta, scale, size …
    │   ├── BadSchema           columns, domains and privacy units that make no sense
    │   ├── BadQuery            a question that the schema cannot answer
    │   │   └── NotFound            a table or a release that the server does not have
    │   ├── BadData             a table that does not fit its schema
    │   └── KeyReused           an idempotency key that came before with another question
    └── Fault               the machine or the program failed; nothing was released
        ├── NoEntropy           the operating system gave no randomness
        ├── SourceFailed        the database or the file failed while it was read
        │   ├── SourceUnavailable   it cannot be read now; nothing was spent
        │   └── SourceChanged       it is no longer what was opened; nothing was spent
        ├── LedgerFailed        the ledger could not be read or written
        ├── LedgerDamaged       the ledger was edited, cut, reordered or restored from a backup
        ├── ServerFailed        a server could not be reached, or failed
        └── SealBroken          an exact value was opened by something that is not a mechanism

A message says the value, the rule and the next step, and never contains private data or a draw of noise.
"""

from collections.abc import Iterable
from difflib import get_close_matches

# How many names of about the same length are compared with a misspelt one, and how much of a name is shown.
_SEARCHED, _LONGEST = 300, 60


class DiscreetError(Exception):
    """The root: catch this to catch everything that Discreet raises on purpose."""


class Refusal(DiscreetError):
    """The request is well formed; the answer is no."""


class BudgetExceeded(Refusal):
    """The request would cost more than is left. Nothing was spent."""


class AnswerLost(Refusal):
    """The question was charged under this key, and no answer was kept: it is not computed a second time."""


class TableChanged(Refusal):
    """The table is no longer what was asked: a newer version was declared, or should be. Nothing was spent."""


class TooLarge(Refusal):
    """The request would need more memory or time than allowed. Nothing was spent."""


class NotAllowed(Refusal):
    """This user may not do this, or is not known. Nothing was spent."""


class TooMany(Refusal):
    """More requests came than are served in this time. Nothing was spent; a retry is safe."""


class Mistake(DiscreetError, ValueError):
    """Something the caller can put right. Nothing was spent."""


class BadParameter(Mistake):
    """A number or option out of its range."""


class BadSchema(Mistake):
    """Columns, a domain or a privacy unit that make no sense."""


class BadQuery(Mistake):
    """A question that the schema cannot answer."""


class NotFound(BadQuery):
    """The server has no such table or release."""


class BadData(Mistake):
    """A table that does not fit its schema."""


class KeyReused(Mistake):
    """An idempotency key that came before with another question."""


class Fault(DiscreetError, RuntimeError):
    """The machine or the program failed. Nothing was released."""


class NoEntropy(Fault):
    """The operating system gave no randomness."""


class SourceFailed(Fault):
    """The database or the file failed while it was read. What it said is not repeated: it may quote a row."""


class SourceUnavailable(SourceFailed):
    """The database or the file cannot be read now. Nothing was spent."""


class SourceChanged(SourceFailed):
    """The rows are no longer those of the table that was opened. Nothing was spent."""


class LedgerFailed(Fault):
    """The ledger could not be read or written, so nothing may be released. A retry is safe."""


class LedgerDamaged(Fault):
    """The ledger is not what it was: edited, cut, reordered, or restored from a backup. It does not serve."""


class ServerFailed(Fault):
    """A server could not be reached, or failed. With the same key a retry is safe."""


class SealBroken(Fault):
    """An exact value was opened by something that is not a mechanism, or with the wrong sensitivity."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error sentence: the closest known word, or the list of them.

    >>> did_you_mean("aeg", ["age", "sex"])
    'did you mean "age"?'
    >>> did_you_mean("height", ["age", "sex"])
    'it has "age", "sex".'
    """
    known = list(known)
    word = word[:_LONGEST]
    # Among ten thousand values a full search takes half a second, a long time for a typing error.
    searched = known
    if len(known) > _SEARCHED:
        searched = [name for name in known if abs(len(name) - len(word)) <= 1][:_SEARCHED]
    close = get_close_matches(word, searched, n=1)
    if close:
        return f'did you mean "{close[0]}"?'
    shown = ", ".join(f'"{name[:_LONGEST]}"' for name in known[:8])
    return f"it has {shown}" + (f" and {len(known) - 8} more." if len(known) > 8 else ".")
