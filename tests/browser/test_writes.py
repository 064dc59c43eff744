"""What a person does in the browser is seen in the engine; what goes wrong loses no text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

import smara
from tests.browser.conftest import Window, open_window
from tests.browser.test_pages import IS_WHOLE
from tests.surfaces.panel_store import addresses

FORMS = 'form[action="/ui/act"]'
CALL = 'input[name="call"]'


def engine(store: str) -> dict[str, object]:
    """What the engine holds that a form may change."""
    with smara.open(store, project="default") as memory:
        records = memory.memories.list(state="all", limit=200).memories
        return {
            "memories": records,
            "histories": [memory.memories.history(each.id) for each in records],
            "tasks": memory.tasks.list(limit=100).tasks,
            "models": memory.models.status()["paused"],
            "trust": memory.memories.trust(),
            "working": memory.working.find(),
            "threads": memory.threads.list(limit=100),
            "retention": memory.retention.list(),
            "arms": memory.moments.has_arms,
            "settings": memory.settings,
        }


def calls_of(page: Page) -> list[str]:
    """The distinct calls of a page's forms, as they stand there."""
    found = page.locator(f"{FORMS} {CALL}")
    values = [found.nth(number).input_value() for number in range(found.count())]
    return list(dict.fromkeys(values))


def send(page: Page, call: str) -> None:
    """Fill and send the first form of a call."""
    form = page.locator(FORMS).filter(has=page.locator(f'{CALL}[value="{call}"]')).first
    form.evaluate("each => each.closest('details, dialog')?.setAttribute('open', '')")
    texts = form.locator("textarea, input[type=text]")
    for number in range(texts.count()):
        texts.nth(number).fill("The queue of the cache holds forty jobs.")
    for box in form.locator("input[type=checkbox][required]").all():
        box.check()
    for choice in form.locator("select, input[type=radio]").all():
        choice.evaluate("each => { each.checked = true; each.selectedIndex = 1; }")
    # The page that the answer leads to is waited for: a window must not close on its way there.
    with (
        page.expect_navigation(),
        page.expect_response(lambda answer: "/ui/act" in answer.url) as answer,
    ):
        form.locator("button").first.click()
    assert answer.value.status == 303, (call, answer.value.status)


@pytest.mark.skipif(not IS_WHOLE, reason="a store for each form: make browser")
def test_every_form_of_every_page_changes_the_engine(browser, store, examples, tmp_path):
    filled, still = Path(store).read_bytes(), []
    with open_window(browser, store, tmp_path, examples) as window:
        tab = window.tab()
        pages = [address for _, address in addresses(examples)]
        every = [(path, call) for path in pages for call in calls_of(tab.open(path))]
    assert ("/ui/review", "memories.accept") in every
    for number, (path, call) in enumerate(every):
        folder = tmp_path / str(number)
        folder.mkdir()
        copy = str(folder / "smara.db")
        Path(copy).write_bytes(filled)
        with open_window(browser, copy, folder, examples) as window:
            tab = window.tab()
            page = tab.open(path)
            before = engine(copy)
            send(page, call)
            if engine(copy) == before:
                still.append((path, call))
            assert tab.trouble == [], (path, call)
    assert still == []


def test_a_memory_is_accepted_by_a_key(window, store):
    tab = window.tab()
    page = tab.open("/ui/review")
    page.keyboard.press("j")
    expect(page.locator(".row").first).to_be_focused()
    page.keyboard.press("a")
    expect(page.locator(".row")).to_have_count(0)
    with smara.open(store, project="default") as memory:
        assert memory.memories.get(window.examples["memories"]).is_verified
    assert tab.trouble == []


def test_the_review_needs_no_mouse(window, store):
    """Look at the effect, correct in the dialog, undo, tick, and accept what is ticked."""
    tab = window.tab()
    page = tab.open("/ui/review")
    page.keyboard.press("j")
    expect(page.locator("[data-effect-text]").first).to_contain_text("tokens")
    page.keyboard.press("e")
    expect(page.get_by_label("Statement")).to_be_focused()
    assert tab.violations() == []
    page.get_by_label("Statement").fill("The worker of the cache retries five times, then stops.")
    page.get_by_role("button", name="Save and accept").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    with smara.open(store, project="default") as memory:
        assert "five times" in memory.memories.get(window.examples["memories"]).content
    page.keyboard.press("z")
    expect(page.locator(".row")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("s")
    expect(page.get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("A")
    expect(page.get_by_role("heading", name="Accept together")).to_be_visible()
    page.get_by_role("button", name="Accept 1 memory").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    with smara.open(store, project="default") as memory:
        assert memory.memories.get(window.examples["memories"]).is_verified
    assert tab.trouble == []


def test_a_key_teaches_from_anywhere_about_the_file_at_hand(window, store):
    tab = window.tab()
    page = tab.open("/ui/browse?file=src/worker.py")
    page.keyboard.press("n")
    expect(page.get_by_label("What should every session know?")).to_be_focused()
    expect(page.get_by_label("File")).to_have_value("src/worker.py")
    page.keyboard.type("Jobs of the worker are idempotent by their key.")
    page.get_by_role("button", name="Remember").click()
    expect(page.get_by_text("Remembered")).to_be_visible()
    with smara.open(store, project="default") as memory:
        [made] = memory.memories.list(file="src/worker.py", is_verified=True, limit=5).memories
    assert made.content == "Jobs of the worker are idempotent by their key."
    assert tab.trouble == []


def test_a_setting_shows_its_effect_before_it_is_saved(window, store):
    tab = window.tab()
    page = tab.open("/ui/settings")
    page.get_by_label("When agents are told").select_option("off")
    expect(page.locator("#preview del").first).to_be_visible()
    with smara.open(store, project="default") as memory:
        assert memory.moments.preview().text
    page.locator("form", has=page.get_by_label("When agents")).get_by_role("button").click()
    expect(page.locator("#preview")).to_contain_text("Nothing.")
    with smara.open(store, project="default") as memory:
        assert memory.moments.preview().text == ""
    assert tab.trouble == []


def note_trap(memory: smara.Memory, name: str = "importer") -> None:
    """Add one more memory of the kind that waits for a person."""
    noted = memory.memories.add(
        f"The {name} of the CSV files fails on a byte order mark of the header.",
        type="gotcha",
        source="agent_explicit",
        by="agent",
        files=[f"src/{name}.py"],
    )
    assert noted.memory is not None


def test_a_memory_is_edited_in_its_row_and_the_list_stays(window, store):
    """Leave it with Esc, then save it; the page moves on meanwhile and takes no text away."""
    tab = window.tab()
    page = tab.open("/ui/browse?type=gotcha")
    page.keyboard.press("j")
    page.keyboard.press("e")
    field = page.locator("#main .row").get_by_label("Statement")
    expect(field).to_be_focused()
    field.fill("Nothing that stays.")
    page.keyboard.press("Escape")
    expect(page.locator("#main .row")).to_contain_text("retries four times")
    expect(page.locator("#main .row")).to_be_focused()
    page.keyboard.press("e")
    expect(field).to_be_focused()
    expect(field).to_have_value(re.compile("retries four times"))
    field.fill("The worker of the cache retries six times.")
    with smara.open(store, project="default") as memory:
        note_trap(memory)
    expect(page.locator("#main .row")).to_have_count(2)
    expect(field).to_be_focused()
    expect(field).to_have_value("The worker of the cache retries six times.")
    assert tab.violations() == []
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#main .row").last).to_contain_text("six times")
    expect(page.locator("#main .row").last).to_be_focused()
    assert page.url.endswith("/ui/browse?type=gotcha")
    with smara.open(store, project="default") as memory:
        assert "six times" in memory.memories.get(window.examples["memories"]).content
    assert tab.trouble == []


def test_an_edit_in_a_row_knows_the_version_it_began_with(window, store):
    tab = window.tab()
    page = tab.open("/ui/browse?type=gotcha")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Statement").fill("The worker retries seven times.")
    with smara.open(store, project="default") as memory:
        memory.memories.update(window.examples["memories"], content="It retries nine times.")
    # The page heard of it when the count of its events is in; another row shows that.
    with smara.open(store, project="default") as memory:
        note_trap(memory)
    expect(page.locator("#main .row")).to_have_count(2)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="Conflict")).to_be_visible()
    expect(page.locator("pre")).to_have_text("It retries nine times.")
    expect(page.get_by_label("Statement")).to_have_value("The worker retries seven times.")


def test_a_row_that_leaves_takes_no_text_with_it(window, store):
    tab = window.tab()
    page = tab.open("/ui/browse?type=gotcha")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Statement").fill("The worker retries seven times.")
    with smara.open(store, project="default") as memory:
        memory.memories.forget(window.examples["memories"])
    expect(page.locator("[data-banner]")).to_contain_text("Something changed.")
    expect(page.get_by_label("Statement")).to_have_value("The worker retries seven times.")
    assert tab.trouble == []


def test_a_page_changes_around_the_text_that_is_typed(window, store):
    tab = window.tab()
    page = tab.open(f"/ui/memories/{window.examples['memories']}")
    field = page.get_by_label("Statement")
    field.fill("Typed, not saved.")
    with smara.open(store, project="default") as memory:
        memory.memories.pin(window.examples["memories"], by="person")
    expect(page.locator(".badge", has_text="pinned")).to_be_visible()
    expect(field).to_have_value("Typed, not saved.")
    expect(field).to_be_focused()
    assert tab.trouble == []


def test_everything_works_without_script(window, store):
    """Every page opens; a memory is edited from the list and accepted by links and forms."""
    tab = window.tab(has_script=False)
    for _, address in addresses(window.examples):
        tab.open(address)
    page = tab.open("/ui/browse?type=gotcha")
    page.get_by_role("link", name="Edit").click(force=True)
    page.get_by_label("Statement").fill("The worker of the cache retries six times.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#main .row")).to_contain_text("six times")
    page = tab.open("/ui/review")
    page.get_by_role("button", name="Accept a").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    with smara.open(store, project="default") as memory:
        found = memory.memories.get(window.examples["memories"])
    assert (found.is_verified, "six times" in found.content) == (True, True)
    assert tab.trouble == []


def test_the_row_at_hand_stays_the_same_record_when_others_come(window, store):
    """A key must not act on another memory than the one that was read."""
    tab = window.tab()
    page = tab.open("/ui/review")
    page.keyboard.press("j")
    row = page.locator(f"#row-{window.examples['review']}")
    expect(row).to_be_focused()
    row.get_by_role("checkbox").check()
    row.focus()
    expect(row.locator("[data-effect-text]")).to_contain_text("tokens")
    with smara.open(store, project="default") as memory:
        for number in range(3):
            note_trap(memory, f"part{number}")
    expect(page.locator(".row")).to_have_count(4)
    expect(row).to_be_focused()
    expect(row.get_by_role("checkbox")).to_be_checked()
    expect(row.locator("[data-effect-text]")).to_contain_text("tokens")
    page.keyboard.press("x")
    expect(page.locator(".row")).to_have_count(3)
    with smara.open(store, project="default") as memory:
        assert not memory.memories.get(window.examples["review"]).is_active
    assert tab.trouble == []


def test_what_a_person_opened_and_saved_stays_when_the_page_changes(window, store):
    tab = window.tab(width=360)
    page = tab.open("/ui/browse?type=gotcha")
    page.locator("summary", has_text="Filters").click()
    page.get_by_label("Name of the view").fill("traps")
    page.get_by_role("button", name="Save view").click()
    expect(page.get_by_role("link", name="traps", exact=True)).to_be_visible()
    with smara.open(store, project="default") as memory:
        note_trap(memory)
    expect(page.locator("#main .row")).to_have_count(2)
    expect(page.get_by_role("link", name="traps", exact=True)).to_be_visible()
    assert tab.trouble == []


def test_operations_follow_the_work_of_other_processes(window, store):
    tab = window.tab()
    page = tab.open("/ui/operations")
    expect(page.locator("#main")).not_to_contain_text("Round of the worker")
    with smara.open(store, project="default") as memory:
        memory.jobs.add("worker", {"observed": 3})
    expect(page.locator("#main")).to_contain_text("observed: 3")
    assert tab.trouble == []


def test_two_tabs_on_one_memory_lose_nothing(window, store):
    first = window.tab()
    second = window.beside(first.page.context)
    address = f"/ui/memories/{window.examples['memories']}"
    for tab, text in ((first, "The cache gives up at one."), (second, "It gives up at two.")):
        tab.open(address)
        tab.page.get_by_label("Statement").fill(text)
    first.page.get_by_role("button", name="Save").click()
    expect(first.page.locator("p.statement")).to_have_text("The cache gives up at one.")
    second.page.get_by_role("button", name="Save").click()
    expect(second.page.get_by_role("heading", name="Conflict")).to_be_visible()
    expect(second.page.get_by_label("Statement")).to_have_value("It gives up at two.")
    expect(second.page.locator("pre")).to_have_text("The cache gives up at one.")
    second.page.get_by_role("button", name="Save mine over it").click()
    expect(second.page.locator("p.statement")).to_have_text("It gives up at two.")
    with smara.open(store, project="default") as memory:
        assert memory.memories.get(window.examples["memories"]).content == "It gives up at two."


@pytest.mark.parametrize("is_known", [True, False], ids=["logged in", "logged out"])
def test_the_text_outlives_a_server_that_is_killed(browser, store, is_known):
    """The next server knows the cookie, unless its session has ended meanwhile."""
    with smara.open(store, project="default") as memory:
        known = memory.memories.remember("Never mock the database.").memory
    assert known is not None
    typed = "Never mock the database, not even in a hurry."
    with panel_process(store) as (process, login):
        context = browser.new_context(locale="en-US")
        window = Window(browser, None, {})  # type: ignore[arg-type]  # its site is a process
        tab = window.beside(context)
        page = tab.page
        page.goto(login)
        page.goto(f"{base(login)}/ui/memories/{known.id}")
        page.get_by_label("Statement").fill(typed)
        process.kill()
        process.wait()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("What you typed is kept")
        expect(page.get_by_label("Statement")).to_have_value(typed)
    with panel_process(store, urlsplit(login).port or 0) as (_, login):
        if not is_known:  # the page says so and keeps the text
            with smara.open(store) as memory, memory.internals.database.write() as session:
                session.run("DELETE FROM access WHERE kind = 'session'")
            page.get_by_role("button", name="Save").click()
            expect(page.get_by_role("status")).to_contain_text("Not saved. What you typed is kept")
            expect(page.get_by_label("Statement")).to_have_value(typed)
            page.goto(login)
            page.goto(f"{base(login)}/ui/memories/{known.id}")
            expect(page.get_by_label("Statement")).to_have_value(typed)
        page.get_by_role("button", name="Save").click()
        expect(page.locator("p.statement")).to_have_text(typed)
        context.close()
    with smara.open(store, project="default") as memory:
        assert memory.memories.get(known.id).content == typed


@contextmanager
def panel_process(store: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run ``smara ui`` as a process of its own; yield it and the address that opens it."""
    command = [sys.executable, "-m", "smara", "--db", store, "--json", "ui", "--no-browser"]
    command += ["--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())["login"]
        finally:
            process.kill()


def base(login: str) -> str:
    parts = urlsplit(login)
    return f"{parts.scheme}://{parts.netloc}"
