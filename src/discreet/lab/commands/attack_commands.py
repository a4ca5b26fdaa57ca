"""`discreet attack` and `discreet audit`: the red team from a shell."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from discreet.cli.output import printable
from discreet.cli.release_command import release_progress
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from rich.table import Table as Grid

    from discreet.lab.attack.attack_outcome import Outcome
    from discreet.lab.attack.epsilon_audit import Audited
    from discreet.lab.attack.people import People
    from discreet.lab.attack.subjects import Subject
    from discreet.source.table import Table

_BAR = 36
_COLOURS = {"exact": "red", "rounded": "yellow", "ours": "green"}
# The public columns and the secret of the bundled table, and columns of many values for tracing.
_PUBLIC, _SECRET, _TRACED = (
    ("age", "education", "sex"),
    "income=>50K",
    ("age", "education", "occupation", "hours_per_week"),
)


class Name(StrEnum):
    """The attacks there are."""

    DIFFERENCING = "differencing"
    RECONSTRUCTION = "reconstruction"
    TRACING = "tracing"
    POSTERIOR = "posterior"


def attack(
    names: Annotated[
        list[Name] | None, typer.Argument(metavar="ATTACK", help="Which ones; all of them, if none is named.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The budget of the curator that is attacked.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The delta of the release that is traced; 0 for Laplace noise.")] = 1e-9,
    people: Annotated[int, typer.Option(min=4, help="How many people to attack.")] = 200,
    questions: Annotated[int, typer.Option(min=1, help="How many counts, or means, an attacker asks for.")] = 1500,
    schema: Annotated[
        Path | None, typer.Option(help="The schema file of a table of yours; by default the bundled census.")
    ] = None,
    public: Annotated[str | None, typer.Option(metavar="A,B", help="The columns that an attacker knows.")] = None,
    secret: Annotated[
        str | None, typer.Option(metavar="COLUMN=VALUE", help='What nobody should learn; "coin" for a coin of each.')
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Attack this server, which has the --schema's table. It pays.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="DISCREET_TOKEN", help="With --server: whose budget to spend.")
    ] = None,
    report: Annotated[Path, typer.Option(help="Where to write the page, one HTML file.")] = Path("out/attack.html"),
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no page.")] = False,
) -> None:
    """Show what an attacker learns from exact answers, from rounded ones, and from us.

    Without --schema the bundled census table is attacked. Exit code 1 if more was learnt than the budget permits.
    """
    from rich.console import Console

    from discreet.lab.attack.attack_page import report as page

    console = Console(highlight=False)
    chosen = _chosen(names, server)
    said = _Attacked(schema, public, secret, epsilon, delta, people, questions)
    # A posterior needs no table.
    table = None if chosen == [Name.POSTERIOR] else _table(schema)
    with _desk(server, token, schema) as desk:
        outcomes = []
        for name in chosen:
            with release_progress(f"Attacking: {name}") as tell:
                outcome = _run_attack(name, table, desk, said, tell)
            _show(console, outcome)
            outcomes.append(outcome)
    if not no_report:
        where = "the bundled census table" if table is None or schema is None else f"table {table.name}"
        _write(page(outcomes, table=where, public=schema is None), report)
        console.print(f"\nThe page: [bold]{printable(str(report))}[/bold]")
    if not all(each.holds for each in outcomes):
        raise typer.Exit(1)


def audit(
    target: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One of --list, or module:function of a draw(table, size) of your own."),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The epsilon that is claimed.")] = 1.0,
    delta: Annotated[float | None, typer.Option(help="The delta that is claimed, for a function of your own.")] = None,
    samples: Annotated[int, typer.Option(min=4, help="How many draws of each of the two tables.")] = 1_000_000,
    confidence: Annotated[float, typer.Option(help="How sure the bound must be.")] = 0.9999,
    one: Annotated[float, typer.Option(help="Of a function of your own: one input.")] = 0.0,
    other: Annotated[float, typer.Option(help="Of a function of your own: its neighbour.")] = 1.0,
    listing: Annotated[bool, typer.Option("--list", help="Only list what can be audited.")] = False,
) -> None:
    """Bound epsilon from below by experiment: of our mechanisms, of published mistakes, or of a function of yours.

    An event is chosen on half of the draws and scored on the other half, so the bound holds with the confidence given.
    Exit code 1 if what should be right is refuted, or if a mistake is not.
    """
    from rich.console import Console
    from rich.markup import escape

    from discreet.lab.attack.subjects import Subject, find, subjects

    console = Console(highlight=False)
    if listing:
        _list_subjects(epsilon)
        return
    if target is not None and ":" in target:
        chosen = [Subject(target, "", _function(target), one, other, float(epsilon), delta or 0.0)]
    elif target is not None:
        chosen = [find(target, epsilon)]
    else:
        chosen = [each for each in subjects(epsilon) if not each.patient]
    audits = []
    with release_progress("Auditing") as tell:
        for place, each in enumerate(chosen):
            audits.append(each.audit(samples=samples, confidence=confidence))
            if tell is not None:
                tell((place + 1) / len(chosen))
    console.print(_audit_table(chosen, audits))
    if len(chosen) == 1:
        console.print(escape(printable(str(audits[0]))))
    console.print(
        f"[dim]Each bound holds with probability {confidence:g}. Not refuted is not proved: for that see the proofs, "
        "and discreet.verify.[/dim]"
    )
    if any(found.refutes(each.epsilon) == each.right for each, found in zip(chosen, audits, strict=True)):
        console.print("[bold red](!)[/bold red] is not as expected: a mistake may need more --samples to show.")
        raise typer.Exit(1)


def _list_subjects(epsilon: float) -> None:
    from rich.console import Console

    from discreet.lab.attack.subjects import subjects

    console = Console(highlight=False)
    for each in subjects(epsilon):
        kind = "" if each.right else "  (a mistake, to be caught)"
        slow = "  (takes minutes: only by name)" if each.patient else ""
        console.print(f"[bold]{each.name:22}[/bold] {each.words}{kind}{slow}")


def _audit_table(chosen: "list[Subject]", audits: "list[Audited]") -> "Grid":
    """A row for each subject: its claim, what was found, and the verdict; (!) marks an unexpected one."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid("", "claimed", "at least", "delta", "draws", "verdict", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for each, found in zip(chosen, audits, strict=True):
        refuted = found.refutes(each.epsilon)
        verdict = "[red]refuted[/red]" if refuted else "[green]not refuted[/green]"
        verdict += "" if refuted != each.right else " [bold red](!)[/bold red]"
        numbers = (f"{each.epsilon:g}", f"{found.bound:.3f}", f"{found.delta:g}", f"{found.samples:,}")
        grid.add_row(escape(printable(each.name)), *numbers, verdict)
    for column in grid.columns[1:5]:
        column.justify = "right"
    return grid


def _chosen(names: list[Name] | None, server: str | None) -> list[Name]:
    if server is None:
        return list(names or Name)
    able = [Name.DIFFERENCING, Name.RECONSTRUCTION]
    if any(name not in able for name in names or ()):
        raise BadParameter(
            "a server can be attacked by differencing and by reconstruction; tracing needs people who are not in its "
            "table, and a posterior needs no table. Leave --server out for those."
        )
    return names or able


def _table(schema: Path | None) -> "Table":
    if schema is None:
        from discreet.data import load_adult

        return load_adult()
    from discreet.source.table import open as open_table

    return open_table(schema)


@contextmanager
def _desk(server: str | None, token: str | None, schema: Path | None) -> Iterator[Any]:
    """The server that is attacked, if there is one."""
    if server is None:
        yield None
        return
    if token is None or schema is None:
        raise BadParameter("--server needs --token, and --schema for the true rows. Give both.")
    from discreet.client import connect

    with connect(server, token) as desk:
        yield desk


class _Attacked(NamedTuple):
    """The options of an attack."""

    schema: Path | None
    public: str | None
    secret: str | None
    epsilon: float
    delta: float
    people: int
    questions: int


def _run_attack(
    name: Name, table: "Table | None", desk: Any, said: _Attacked, tell: Callable[[float], None] | None
) -> "Outcome":
    from discreet.lab.attack import experiments

    if name is Name.POSTERIOR or table is None:
        return experiments.attack_by_posterior(epsilon=said.epsilon)
    if name is Name.TRACING:
        return experiments.attack_by_tracing(
            table,
            people=max(2, said.people // 2),
            means=said.questions,
            columns=_public(said, _TRACED),
            epsilon=said.epsilon,
            delta=said.delta,
            tell=tell,
        )
    chosen = _people(table, said, everybody=desk is not None)
    price = said.epsilon if desk is None else _whole_budget(desk)
    if name is Name.DIFFERENCING:
        return experiments.attack_by_differencing(
            chosen, epsilon=price, trials=min(said.people, 100), desk=desk, tell=tell
        )
    return experiments.attack_by_reconstruction(chosen, epsilon=price, questions=said.questions, desk=desk, tell=tell)


def _whole_budget(desk: Any) -> float:
    """The budget that is left; if that is nearly nothing, the whole: the desk then answers only what is known."""
    left = float(desk.remaining.epsilon)
    return left if left > 1e-3 else left + float(desk.spent.epsilon)


def _public(said: _Attacked, usual: tuple[str, ...]) -> tuple[str, ...]:
    if said.public is not None:
        return tuple(name.strip() for name in said.public.split(",") if name.strip())
    if said.schema is not None:
        raise BadParameter("with --schema, say what an attacker knows (--public age,sex) and what not (--secret a=b).")
    return usual


def _people(table: "Table", said: _Attacked, *, everybody: bool) -> "People":
    from discreet.lab.attack.people import COIN, all_people, choose_people

    public = _public(said, _PUBLIC)
    if said.secret is None and said.schema is not None:
        raise BadParameter('with --schema, say what nobody should learn: --secret "smokes=yes".')
    column, _, written = (_SECRET if said.secret is None else said.secret).partition("=")
    value = None if column == COIN or not written else _value(table, column, written)
    if everybody:
        return all_people(table, public=public, secret=column, value=value)
    return choose_people(table, said.people, public=public, secret=column, value=value)


def _value(table: "Table", column: str, written: str) -> Any:
    """The value of a column with this label."""
    declared = table.domain[column]
    labels = {str(declared.label(cell)): cell for cell in range(declared.inside)}
    if written not in labels:
        from discreet.errors import did_you_mean

        raise BadParameter(f'column "{column}" has no value "{printable(written)}"; {did_you_mean(written, labels)}')
    values = getattr(declared, "values", None)
    return values[labels[written]] if values is not None else getattr(declared, "lower", 0) + labels[written]


def _function(target: str) -> Any:
    """`module:function`, from the path of Python or from here."""
    import sys

    module, _, name = target.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError):
        raise BadParameter(
            f'"{printable(target)}" cannot be found. Write module:function, as Python imports it.'
        ) from None
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise BadParameter(f'"{printable(target)}" is no function. Name one that takes a table and a number of draws.')
    return found


def _write(page: str, report: Path) -> None:
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(page, encoding="utf-8")
    except OSError as error:
        raise BadParameter(f'"{report}" cannot be written: {error.strerror}. Choose another --report.') from None


def _show(console: Any, outcome: "Outcome") -> None:
    """One attack in a few lines: a bar for each answerer, and what is permitted."""
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    console.print(Text(f"\n{outcome.title}", style="bold"))
    console.print(Padding(Text(outcome.how, style="dim"), (0, 0, 0, 2)))
    grid = Grid.grid(padding=(0, 1))
    for each in outcome.learnt:
        bar = Text(_bar(each.share, outcome.limit), style=_COLOURS[each.kind])
        grid.add_row(f"  {each.source}", bar, Text(f"{each.share:.1%}", style=f"bold {_COLOURS[each.kind]}"))
    grid.add_row("  knowing nothing", Text(_bar(outcome.chance, outcome.limit), style="dim"), f"{outcome.chance:.1%}")
    console.print(grid)
    luck = "" if outcome.confidence == 1 else f"; with luck, in one experiment, {outcome.luck:.1%}"
    limit = f"{outcome.measure}. │ is what {outcome.budget} permits: {outcome.limit:.1%}{luck}."
    for note in (limit, *outcome.notes):
        console.print(Padding(Text(note, style="dim"), (0, 0, 0, 2)))
    good = "[green]Nothing was learnt that is not permitted.[/green]"
    console.print(f"  {good if outcome.holds else '[bold red]More was learnt than is permitted.[/bold red]'}")


def _bar(share: float, limit: float) -> str:
    """A bar with a mark where the limit is.

    >>> _bar(0.5, 0.75)
    '██████████████████         │        '
    """
    filled, mark = round(share * _BAR), min(round(limit * _BAR), _BAR - 1)
    cells = ["█" if place < filled else " " for place in range(_BAR)]
    cells[mark] = "┃" if mark < filled else "│"
    return "".join(cells)
