"""The whole code graph in a browser: drawn, searched, clicked, and without WebGL."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import smara
from tests.browser.conftest import CHROMIUM, open_window
from tests.browser.screenshots import write_code


@pytest.fixture
def shop(store, tmp_path, monkeypatch):
    """A repository whose modules use one another, indexed."""
    folder = tmp_path / "shop"
    folder.mkdir()
    write_code(folder)
    monkeypatch.chdir(folder)
    with smara.open(store, project="default") as memory:
        memory.code.index(folder)
    return folder


@pytest.mark.parametrize(("theme", "width"), [("light", 1_440), ("dark", 360)])
def test_a_name_is_found_and_its_impact_shown_by_keyboard_and_by_mouse(
    shop, store, window, theme, width
):
    tab = window.tab(theme=theme, width=width)
    tab.open("/ui/map")
    tab.page.locator("#main").get_by_role("link", name="Code graph").click()
    page, canvas = tab.page, tab.page.locator("[data-canvas]")
    expect(canvas).to_have_attribute("data-count", "16")
    field = page.locator("#main").get_by_role("searchbox")
    field.press_sequentially("stock api")
    expect(page.get_by_role("button", name="src/stock/api.py:stock")).to_be_visible()
    field.fill("src/stock/api.py:stock")
    field.press("Enter")
    impact = page.locator("[data-found]")
    expect(impact.get_by_role("link", name="src/cart/api.py:cart")).to_be_visible()
    assert tab.violations() == []
    assert tab.overflow() == 0
    with smara.open(store, project="default") as memory:
        memory.jobs.add("worker", {"observed": 1})
    page.get_by_role("button", name="Nearer").click()
    expect(impact).to_contain_text("What depends on src/stock/api.py:stock")
    page.wait_for_timeout(600)  # the camera comes to rest with the node in the middle
    canvas.click()
    expect(impact).to_contain_text("What depends on src/stock/api.py:stock")
    page.get_by_role("button", name="Show all").click()
    expect(impact).to_be_empty()
    assert tab.trouble == []


def test_a_browser_without_webgl_is_told_where_the_same_is(browser, shop, store, examples):
    blind = browser.browser_type.launch(
        executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-3d-apis"]
    )
    with open_window(blind, store, shop.parent, examples) as window:
        tab = window.tab()
        page = tab.open("/ui/map/graph")
        expect(page.locator("[data-status]")).to_contain_text("needs WebGL")
        assert tab.violations() == []
        assert tab.trouble == []
    blind.close()


def test_the_first_page_is_there_before_the_code_is_read_and_fills_itself_in(shop, window, store):
    assert "src/cart" not in window.site.ask("GET", "/ui").body.decode()
    tab = window.tab()
    page = tab.open("/ui")
    coverage = page.locator("#coverage")
    expect(coverage.get_by_role("link", name="src/cart")).to_be_visible()
    with smara.open(store, project="default") as memory:
        memory.memories.remember("Carts are priced in cents.", files=["src/cart/api.py"])
    expect(coverage.locator("tr", has_text="src/cart")).to_contain_text("1 / 1")
    assert tab.trouble == []


def test_without_script_a_link_shows_what_is_known_of_the_code(shop, window):
    page = window.tab(has_script=False).open("/ui")
    page.locator("#coverage").get_by_role("link", name="Show").click()
    expect(page.locator("#coverage").get_by_role("link", name="src/cart")).to_be_visible()
