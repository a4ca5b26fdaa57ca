"""The frame of a page, and its parts: sections, figures, tiles and tables. Whoever gives a text has escaped it."""

from collections.abc import Iterable, Sequence
from html import escape

from discreet.picture import visible


def document(title: str, style: str, body: str) -> str:
    """A whole page: whatever a browser is told to fetch or to run in it, it does not.

    >>> "default-src 'none'" in document("a < b", "", "") and "<title>a &lt; b</title>" in document("a < b", "", "")
    True
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>{shown(title)}</title>
<style>
{style}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def section(title: str, words: str, content: str) -> str:
    """A part of the page: what it is called, what it says, and what it shows."""
    said = f"<p>{words}</p>\n" if words else ""
    return f"<section>\n<h2>{title}</h2>\n{said}{content}\n</section>"


def figure(svg: str, style: str = "", head: str = "") -> str:
    """A drawing; one that is `wide` can be scrolled on a phone."""
    named = f"<h3>{head}</h3>\n" if head else ""
    styled = f' class="{style}"' if style else ""
    return f"<figure{styled}>\n{named}{svg}\n</figure>"


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """The few numbers that matter most, each with words that are shown as they are."""
    each = "\n".join(f'<div class="tile"><b>{value}</b><span>{shown(words)}</span></div>' for value, words in pairs)
    return f'<div class="tiles">\n{each}\n</div>'


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows under headers; a narrow screen scrolls it.

    >>> table(["error"], [["3"]]).count("<td>")
    1
    """
    head = "".join(f"<th>{each}</th>" for each in headers)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"""<div class="scroll"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div>"""


def shown(words: str) -> str:
    """A text of somebody else's: nothing in it is a tag, and all of it is seen.

    >>> shown("<b>\\x1b")
    '&lt;b&gt;\\\\x1b'
    """
    return escape("".join(letter if letter.isprintable() else visible(letter) for letter in words))
