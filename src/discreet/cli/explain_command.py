"""`discreet explain`: what a guarantee means, in words, with a story and with pictures."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from discreet.errors import BadParameter


class Story(StrEnum):
    """The stories there are."""

    smoking = "smoking"


def explain_guarantee(
    epsilon: Annotated[float, typer.Option(help="How much may leak about one person; 0.1 to 3 is usual.")],
    delta: Annotated[float, typer.Option(help="The probability that more leaks; 0, or much less than 1/rows.")] = 0.0,
    rows: Annotated[int | None, typer.Option(help="The number of rows, to see if the budget can be useful.")] = None,
    chosen: Annotated[
        Story | None, typer.Option("--story", help="Add what an insurer learns about Alice from a study of smokers.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Write a page with pictures too: FILE.html.")] = None,
) -> None:
    """Say what a guarantee means: odds, beliefs, utility, the best attack, families."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from discreet.meaning import explain as meaning_of

    meaning = meaning_of(epsilon=epsilon, delta=delta, rows=rows)
    console = Console(highlight=False)
    promise = f"epsilon {meaning.epsilon:g}" + (f", delta {meaning.delta:g}" if meaning.delta else "")
    console.print(Text.assemble("\nThe promise at ", (promise, "bold")))
    sentences = [*meaning.sentences, *([("Smoking and cancer", _smoking(epsilon))] if chosen else [])]
    for title, sentence in sentences:
        console.print(Text(f"\n{title}", style="bold cyan"))
        console.print(Padding(Text(sentence), (0, 0, 0, 2)))
    for warning in meaning.warnings:
        console.print(Padding(Text.assemble(("\nWarning  ", "bold red"), warning), (0, 0, 0, 0)))
    if picture is not None:
        from discreet.meaning import meaning_page

        try:
            picture.write_text(meaning_page(meaning), encoding="utf-8")
        except OSError as error:
            raise BadParameter(f'"{picture}" cannot be written: {error.strerror}. Give another --picture.') from None
        console.print(Text.assemble("\nWith pictures: ", (str(picture.resolve()), "bold")))
    console.print()


def _smoking(epsilon: float) -> str:
    """The story, and a simulated study, with Alice's row and without it."""
    from discreet.meaning import Study, largest_difference, learned, run_study
    from discreet.meaning.guarantee_page import percent, story

    study = Study(epsilon=epsilon)
    outcome = run_study(study, harmful=True, alice_is_ill=True)
    used, unused = (learned(study, outcome, with_alice=with_alice) for with_alice in (True, False))
    return (
        f"{story(study)}\nA study that was drawn just now, in a world where smoking is harmful and Alice is ill, says "
        f"{outcome:,}: {percent(used.ill)} with her row, {percent(unused.ill)} without. Over everything that a study "
        f"may say, no belief of the insurer's differs by more than e^{largest_difference(study):.2f}; the promise is "
        f"e^{2 * float(study.epsilon):g}."
    )
