"""Every page in a real browser: languages, themes, widths, axe, and a silent console."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect

import smara
from smara.surfaces.panel.export import export
from tests.surfaces.panel_store import addresses

IS_WHOLE = os.environ.get("SMARA_BROWSER") == "all"
LOOKS = [
    (language, theme, width)
    for language in ("en", "fr")
    for theme in ("light", "dark")
    for width in (360, 1_440)
]
FEW = [("en", "light", 1_440), ("fr", "dark", 360)]
"""In a small run each page has one of these looks."""


@pytest.mark.parametrize(("language", "theme", "width"), LOOKS if IS_WHOLE else FEW)
def test_every_page_is_accessible_silent_and_fits(window, language, theme, width):
    tab = window.tab(language, theme, width)
    wrong = []
    pages = list(addresses(window.examples))
    for spec, address in pages if IS_WHOLE else pages[FEW.index((language, theme, width)) :: 2]:
        page = tab.open(f"{address}?q=cache" if spec.template == "search.html" else address)
        assert page.locator("html").get_attribute("lang") == language
        assert page.locator("h1").count() == 1, address
        wrong += [f"{address} {each}" for each in tab.violations()]
        if over := tab.overflow():
            wrong.append(f"{address} is {over} px too wide")
    assert wrong + tab.trouble == []


def test_what_is_looked_for_would_be_found(window):
    """The looks above can fail: faults that are put into a page are seen."""
    tab = window.tab(width=360)
    tab.open("/ui")
    tab.page.evaluate(
        """() => {
            document.querySelector("main").innerHTML += '<img src="data:,"><input name="bare">';
            document.querySelector("main").append(Object.assign(document.createElement("pre"), {
                textContent: "x".repeat(9000), style: "white-space: pre" }));
            console.log("said");
        }"""
    )
    rules = {each.partition(":")[0] for each in tab.violations()}
    assert {"image-alt", "label"} <= rules
    assert tab.overflow() > 0
    assert "log: said" in tab.trouble


def test_the_page_to_take_away_is_searched_without_a_server(window, store, tmp_path):
    path = tmp_path / "shop.html"
    with smara.open(store, project="default") as memory:
        export(memory, path)
    tab = window.tab(width=360)
    tab.page.goto(path.as_uri())
    memories = tab.page.locator("li.card[data-item]")
    expect(memories.filter(visible=True)).to_have_count(2)
    assert tab.violations() == []
    assert tab.overflow() == 0
    tab.page.get_by_label("Search this page").fill("MOCK database")
    expect(memories.filter(visible=True)).to_have_count(1)
    assert tab.trouble == []
