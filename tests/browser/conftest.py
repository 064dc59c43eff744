"""One Chromium for a file of tests, and pages that keep what they say."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

import smara
from smara.surfaces.panel.panel import panel_routes
from tests.surfaces.conftest import db, store  # noqa: F401  # the stores of the doors' tests
from tests.surfaces.http_server import Site, http_site
from tests.surfaces.panel_store import fill

CHROMIUM = next(
    (path for each in ("chromium", "chromium-browser") if (path := shutil.which(each))), None
)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
_LOCALES = {"fr": "fr-FR", "en": "en-US"}


@dataclass
class Tab:
    """A page of a browser that is logged in, and what went wrong in it."""

    page: Page
    site: Site
    trouble: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """Go to a page of the panel, drawn to its end."""
        answer = self.page.goto(f"{self.site.url}{path}", wait_until="load")
        assert answer is not None
        assert answer.status < 400, (path, answer.status)
        return self.page

    def violations(self) -> list[str]:
        """What axe finds in the page: rule and place."""
        found: dict[str, Any] = self.page.evaluate("() => axe.run()")
        return [
            f"{rule['id']}: {node['html'][:200]} ({node['failureSummary']})"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        width: int = self.page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width


@dataclass
class Window:
    """A browser in front of a site."""

    browser: Browser
    site: Site
    examples: dict[str, str]
    _contexts: list[BrowserContext] = field(default_factory=list)

    def tab(
        self,
        language: str = "en",
        theme: str = "light",
        width: int = 1_440,
        *,
        has_script: bool = True,
    ) -> Tab:
        """Open a tab of its own profile, logged in."""
        context = self.browser.new_context(
            locale=_LOCALES[language],
            color_scheme="dark" if theme == "dark" else "light",
            viewport={"width": width, "height": 900},
            reduced_motion="reduce",
            java_script_enabled=has_script,
        )
        self._contexts.append(context)
        context.add_init_script(AXE_SCRIPT)
        name, _, value = self.site.cookie().partition("=")
        context.add_cookies([{"name": name, "value": value, "url": self.site.url}])
        return self.beside(context)

    def beside(self, context: BrowserContext) -> Tab:
        """Open one more tab of a profile."""
        tab = Tab(context.new_page(), self.site)
        page, trouble = tab.page, tab.trouble
        page.on("console", lambda said: _note_message(trouble, said))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("requestfailed", lambda lost: _note_failure(trouble, lost))
        return tab

    def close(self) -> None:
        for context in self._contexts:
            for page in context.pages:
                # A page that is closed while it goes elsewhere keeps the browser waiting for ever.
                page.goto("about:blank")
            context.close()


def _note_message(trouble: list[str], said: Any) -> None:
    # The software that draws WebGL on a machine without a screen remarks that it is slow.
    if "GL Driver Message (OpenGL, Performance" not in said.text:
        trouble.append(f"{said.type}: {said.text}")


def _note_failure(trouble: list[str], lost: Any) -> None:
    # A page that is left ends its stream, and what it was still asking for.
    if not lost.url.endswith("/events") and "ERR_ABORTED" not in str(lost.failure):
        trouble.append(f"failed: {lost.url} {lost.failure}")


@pytest.fixture(autouse=True)
def _settings_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A form of settings writes a file, which no other test may read."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser of a file of tests.

    While it is open an event loop runs in this thread, in which other tests could run none.
    """
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@contextmanager
def open_window(
    browser: Browser, path: str, folder: Path, examples: dict[str, str]
) -> Iterator[Window]:
    """Serve a store, with a browser in front of it."""
    with http_site(path, folder, pages=panel_routes) as site:
        opened = Window(browser, site, examples)
        try:
            yield opened
        finally:
            opened.close()


@pytest.fixture
def examples(store: str) -> dict[str, str]:  # noqa: F811
    """Fill the store with something for every page."""
    with smara.open(store) as memory:
        return fill(memory)


@pytest.fixture
def window(
    browser: Browser,
    store: str,  # noqa: F811
    examples: dict[str, str],
    tmp_path: Path,
) -> Iterator[Window]:
    """A browser in front of a site with something on every page."""
    with open_window(browser, store, tmp_path, examples) as opened:
        yield opened
