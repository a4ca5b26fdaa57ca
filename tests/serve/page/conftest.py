"""A real server and a real browser, which all tests of the page share; and a watch over what the browser does."""

import re
import shutil
from urllib.parse import urlsplit

import pytest

from support.live_server import Live, people, settings

CHROMIUM = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
# So many milliseconds are waited for what must come.
PATIENCE = 20_000
# A refusal is no accident: the browser reports every reply of this kind.
REPLY = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Two tables: the bundled one, and a small one."""
    folder = tmp_path_factory.mktemp("page")
    with Live(settings(folder, schemas=("adult", str(people(folder))), quantum=0.01, rate=100.0)) as found:
        yield found


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import expect, sync_playwright

    # On a busy machine the first chart takes seconds: what draws it is made then.
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM.split())
        yield browser
        browser.close()


def context_of(browser, server, token, **options):
    """A browser of somebody who has a token, or of nobody yet."""
    made = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | options))
    made.set_default_timeout(PATIENCE)
    if token:
        made.add_cookies([{"name": "discreet", "value": token, "url": server.address}])
    return made


@pytest.fixture(scope="session")
def at_home(server, chromium):
    """The browser of the owner, which keeps what is static from test to test."""
    found = context_of(chromium, server, server.owner)
    yield found
    found.close()


class Visit:
    """A window of somebody, and what it did: the hosts it called and the errors it met."""

    def __init__(self, context, server):
        self.context, self.server = context, server
        self.hosts, self.errors = set(), []
        self.page = context.new_page()
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).hostname))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._hear)

    def _hear(self, message):
        if message.type in ("error", "warning") and not REPLY.match(message.text):
            self.errors.append(message.text)

    def to(self, path):
        """Go to a page of the server."""
        self.page.goto(self.server.address + path)
        return self.page

    def early(self, path, reply):
        """Go to a page that waits for a reply; the second is a function that lets the reply through."""
        waiting = []
        self.page.route(reply, lambda route: waiting.append(route))
        with self.page.expect_request(reply):
            self.to(path)
        return self.page, lambda: waiting[0].continue_()


@pytest.fixture
def visit(server, chromium, at_home):
    """A function that opens a window, of the owner unless a token is given; afterwards nothing strange has happened."""
    opened, others = [], []

    def open_window(path=None, token=server.owner, **options):
        context = at_home
        if options or token != server.owner:
            context = context_of(chromium, server, token, **options)
            others.append(context)
        found = Visit(context, server)
        opened.append(found)
        if path is not None:
            found.to(path)
        return found

    yield open_window
    for each in opened:
        each.page.close()
        assert each.hosts <= {"127.0.0.1"}
        assert each.errors == []
    for context in others:
        context.close()
