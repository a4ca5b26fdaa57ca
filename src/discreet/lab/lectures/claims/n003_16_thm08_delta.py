"""Algorithm 2 is not (ε, 0)-DP: a long run without an update loses more than any ε, with a tiny probability."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, log10

from flint import arb

from discreet.accounting import delta, gaussian_gate
from discreet.accounting.event import Event, total_loss
from discreet.accounting.filter import accounting_for
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.textbook.pmw_design import Terms
from discreet.lab.textbook.pmw_lectures import textbook
from discreet.noise.law import laplace_tail
from discreet.numeric import precision
from discreet.report.plot import Line, plot

EPSILON, DELTA, BETA = 1.0, 1e-6, 0.05
ROWS, CELLS, BITS = 10**10, 1024, 256
QUESTIONS = (10**6, 10**8, 10**9)


@dataclass(frozen=True, slots=True)
class Quiet:
    """A run of borderline questions without an update: its loss, and log10 of how likely a loss above ε is."""

    loss: float
    log10_chance: float


def scale() -> Fraction:
    """n times the σ of Algorithm 2, with 1 for the constant in its O: (ln|X|)^⅓ ln(1/δ) n^⅔/ε."""
    return Fraction(round(log(CELLS) ** (1 / 3) * log(1 / DELTA) * ROWS ** (2 / 3) / EPSILON))


def threshold(questions: int) -> int:
    """n times its τ, which is σ·ln(k/β)."""
    return ceil(float(scale()) * log(questions / BETA))


def quiet(questions: int, noise: Fraction) -> Quiet:
    """All guesses are 0 and the true count is at τ, or one below: exact chances of no update, to the k-th power."""
    edge = threshold(questions)
    with precision(BITS):

        def stays(count: int) -> arb:
            return 1 - laplace_tail(edge - count, noise) - laplace_tail(edge + count, noise)

        likelier, each = stays(edge - 1), (stays(edge - 1) / stays(edge)).log()
        # The number of questions without an update before the loss passes ε.
        needed = EPSILON / float(each.mid())
        chance = needed * float(likelier.log().mid()) / log(10)
        return Quiet(float((questions * each).lower()), chance)


def judge(found: dict[int, Quiet]) -> list[Finding]:
    """The loss grows with k and passes ε, where σ stays the same; the probability of that is much below δ."""
    last = max(found)
    growth = found[last].loss / last / (found[min(found)].loss / min(found))
    return [
        Finding(
            f"the loss of no update in k = {', '.join(f'10^{log10(k):.0f}' for k in found)} borderline questions",
            f"at most ε = {EPSILON:g} (the notes); more than ε for large k (the correction)",
            ", ".join(f"{each.loss:.3g}" for each in found.values()),
            found[last].loss > EPSILON and abs(growth - 1) < 1e-6,
        ),
        Finding(
            "the probability that such a run loses more than ε",
            f"at most δ = {DELTA:g}",
            f"e^{found[last].log10_chance * log(10):.0f}",
            found[last].log10_chance <= log10(DELTA),
        ),
    ]


def design() -> Event:
    """What the product's form of Theorem 8 may do in a session, every constant written out, at (ε, δ) = (1, 10⁻⁶)."""
    terms = Terms(gaussian_gate(EPSILON, DELTA), 1000, BETA, 1, tells_rows=False)
    return textbook("cube", terms, cells=CELLS, rows=ROWS).event


def judge_design(event: Event) -> Finding:
    """All its updates cost (ε, δ); basic composition with δ = 0 gives an upper bound that is much larger."""
    pure = float(total_loss(event, accounting_for("pure")))
    needed = delta(event, epsilon=EPSILON, by="gaussian")
    return Finding(
        f"all updates of the product's setting “cube”, n = 10^{log10(ROWS):.0f}",
        f"({EPSILON:g}, {DELTA:g})-DP; with δ = 0, adding up proves only a larger ε",
        f"δ is {needed:.2g} at ε = {EPSILON:g}; added up, with δ = 0, ε is {pure:,.0f}",
        needed <= DELTA and pure > EPSILON,
    )


def run() -> Outcome:
    """The exact loss of quiet runs of Algorithm 2, and the price of the product's form of it."""
    noise = scale()
    tau = threshold(QUESTIONS[-1]) / ROWS
    found = {questions: quiet(questions, noise) for questions in QUESTIONS}
    figure = plot(
        "Loss of a run of k borderline questions without an update",
        [
            Line("exact loss", [(k, each.loss) for k, each in found.items()], "third"),
            Line("ε", [(QUESTIONS[0], EPSILON), (QUESTIONS[-1], EPSILON)], "cap"),
        ],
        x="questions k",
        y="privacy loss",
        log_x=True,
        log_y=True,
    )
    note = f"n = 10¹⁰, |X| = {CELLS}, with 1 for every constant that the notes hide in an O; τ is {tau:.2f} at k = 10⁹."
    return Outcome((*judge(found), judge_design(design())), figure, note)


CLAIM = Claim(
    name="pmw-needs-delta",
    source="003 Thm. 8",
    title="Theorem 8 says (ε, 0) and means (ε, δ)",
    statement="The theorem states (ε, 0)-DP, but its σ and τ carry ln(1/δ), and its proof leaves out events of "
    "probability δ. Algorithm 2 is not (ε, 0)-DP; the product's form of it, a sparse vector, is (ε, δ)-DP.",
    run=run,
    correction=True,
)
