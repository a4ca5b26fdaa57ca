"""What the terminal shows of claims."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from discreet.lab.lectures.catalogue import find
from discreet.lab.lectures.claim import Claim
from discreet.lab.lectures.run import Result, Results


def show_list(console: Console, claims: Iterable[Claim]) -> None:
    """Every claim in a line."""
    grid = Grid("claim", "where", "what", box=None, pad_edge=False, header_style="dim")
    for claim in claims:
        fixed = " [yellow](a correction)[/yellow]" if claim.correction else ""
        grid.add_row(f"[cyan]{claim.name}[/cyan]", escape(claim.source), escape(claim.title) + fixed)
    grid.columns[0].no_wrap = grid.columns[1].no_wrap = True
    console.print(grid)
    console.print("\nTry one: [bold]discreet reproduce NAME[/bold]; all of a note: 002; all: --all.")


def show_result(console: Console, result: Result) -> None:
    """A claim beside what was measured."""
    claim = find(result.claim)
    fixed = "  [yellow]a correction to the notes[/yellow]" if claim.correction else ""
    console.print(f"\n[dim]{escape(claim.source)}[/dim]  [bold]{escape(claim.title)}[/bold]{fixed}")
    console.print(f"{escape(claim.statement)}\n")
    if result.findings:
        grid = Grid("", "what", "claimed", "measured", box=None, pad_edge=False, header_style="dim")
        for finding in result.findings:
            colour = "" if finding.holds else "[red]"
            grid.add_row(
                _mark(finding.holds), escape(finding.what), escape(finding.claimed), colour + escape(finding.measured)
            )
        console.print(grid)
    if result.failure:
        console.print(f"[red]{escape(result.failure)}[/red]")
    if result.note:
        console.print(f"\n[dim]{escape(result.note)}[/dim]")
    word = "[green]It holds.[/green]" if result.holds else "[red]It does not hold.[/red]"
    console.print(f"\n{word} [dim]{result.seconds:.1f} s[/dim]")


def show_summary(console: Console, results: Results) -> None:
    """Every claim in a line, with its mark; then how many hold."""
    grid = Grid(box=None, pad_edge=False, show_header=False)
    for result in results:
        claim = find(result.claim)
        grid.add_row(
            _mark(result.holds), escape(claim.source), escape(claim.title), f"[dim]{result.seconds:.1f} s[/dim]"
        )
    grid.columns[1].no_wrap, grid.columns[3].justify = True, "right"
    console.print(grid)
    colour = "green" if results.holds else "red"
    console.print(
        f"\n[bold {colour}]{results.holding} of {len(results)} claims hold.[/] [dim]{results.seconds:.0f} s[/dim]"
    )


def _mark(holds: bool) -> str:
    return "[green]✓[/green]" if holds else "[red]✗[/red]"
