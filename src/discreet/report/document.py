"""HTML pages and their parts: sections, figures, tiles and tables. Texts come escaped, unless it says otherwise.

A page is one file that needs nothing else: no network and no script.
"""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

# The style sheet of all pages, reports and the server's alike.
STYLE = Path(__file__).with_name("style.css").read_text(encoding="utf-8").strip()


def document(title: str, body: str) -> str:
    """A whole page. Its content security policy forbids a browser to fetch or run anything.

    >>> "default-src 'none'" in document("a < b", "") and "<title>a &lt; b</title>" in document("a < b", "")
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
{STYLE}
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
    """A card with a heading, a paragraph of words (or none), and content."""
    said = f"<p>{words}</p>\n" if words else ""
    return f"<section>\n<h2>{title}</h2>\n{said}{content}\n</section>"


def figure(svg: str, style: str = "", head: str = "") -> str:
    """A drawing, with a heading if `head` is given. One whose style is `wide` can be scrolled on a phone."""
    named = f"<h3>{head}</h3>\n" if head else ""
    styled = f' class="{style}"' if style else ""
    return f"<figure{styled}>\n{named}{svg}\n</figure>"


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """The few numbers that matter most, each with words, which are escaped here."""
    each = "\n".join(f'<div class="tile"><b>{value}</b><span>{shown(words)}</span></div>' for value, words in pairs)
    return f'<div class="tiles">\n{each}\n</div>'


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a narrow screen scrolls it.

    >>> table(["error"], [["3"]]).count("<td>")
    1
    """
    head = "".join(f"<th>{each}</th>" for each in headers)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"""<div class="scroll"><table class="listed">
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div>"""


def shown(words: str) -> str:
    """Escape a text from outside: nothing in it is a tag, and control characters are written out.

    >>> shown("<b>\\x1b")
    '&lt;b&gt;\\\\x1b'
    """
    return escape(
        "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in words)
    )
