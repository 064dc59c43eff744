"""Take the pictures of the guide: ``python -m tests.browser.screenshots``.

Every page of the panel at 1,200 pixels, of a small invented project, in few colors so that a
picture stays small.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import smara
from smara.knowledge.models import Evidence
from smara.surfaces.panel.panel import panel_routes
from tests.browser.conftest import CHROMIUM, FLAGS, Window
from tests.surfaces.http_server import http_site
from tests.surfaces.panel_store import addresses, fill

PLACE = Path(__file__).parents[2] / "docs" / "images"
COLORS = 48
TAUGHT = (
    ("Prices are integers of cents; they are rounded once, at the end of an invoice.", "src/billing/api.py"),  # noqa: E501
    ("Never call the mail server from a request: put a job into the queue.", "src/mail/api.py"),
    ("Releases are cut with `make release`, after the changelog was read aloud.", ""),
    ("The search index is rebuilt on Sundays and lags behind on that day.", "src/search/api.py"),
)  # fmt: skip
MODULES = {
    "prices": (), "stock": (), "mail": (), "search": ("stock",), "billing": ("prices", "mail"),
    "cart": ("prices", "stock"), "checkout": ("cart", "billing", "stock"),
    "web": ("checkout", "search"),
}  # fmt: skip
NOTED = (
    ("`pytest tests/billing` needs DATABASE_URL; without it the fixtures hang.", "error_pattern"),
    ("The importer reads CSV files as UTF-8 and fails on a byte order mark.", "gotcha"),
)


def fill_shop(memory: smara.Memory) -> dict[str, str]:
    """Fill a project that looks like one of a small shop."""
    examples = fill(memory)
    for text, file in TAUGHT:
        memory.memories.remember(text, files=[file] if file else [])
    said = memory.messages.add(
        thread_id="fix-the-invoice",
        role="user",
        content="The invoice of March is off by one cent. Prices must be integers of cents.",
    )
    memory.messages.add(
        thread_id="fix-the-invoice",
        role="assistant",
        content="The total was rounded per line. I round it once now; all 42 tests pass.",
    )
    memory.threads.update("fix-the-invoice", title="Fix the invoice of March")
    for text, type_ in NOTED:
        memory.memories.add(
            text,
            type=type_,
            by="agent",
            session_id="fix-the-invoice",
            files=["tests/billing/conftest.py"],
            evidence=[Evidence(message_id=said.id, quote="off by one cent")],
        )
    first = memory.tasks.add("Round invoices once", priority=1)
    second = memory.tasks.add("Send invoices again")
    memory.tasks.depend(second.id, first.id)
    memory.tasks.claim(first.id, session_id="fix-the-invoice")
    for number in range(4):
        memory.moments.start(f"session-{number}", agent="claude-code")
    memory.jobs.add("worker", {"looked_at": 3, "observed": 2, "embedded": 14})
    return {**examples, "sessions": "fix-the-invoice", "review/session": "fix-the-invoice"}


def write_code(root: Path) -> None:
    """Write a small repository whose modules use one another."""
    git = partial(subprocess.run, cwd=root, check=True, capture_output=True)
    git(["git", "init", "-q"])
    for name, used in MODULES.items():
        folder = root / "src" / name
        folder.mkdir(parents=True)
        lines = [f"from src.{each}.api import {each}" for each in used]
        lines += ["", "", f"def {name}(order):", f'    """Do the {name} of an order."""']
        lines += [f"    {each}(order)" for each in used] + ["    return order", ""]
        (folder / "api.py").write_text("\n".join(lines))


def main() -> None:
    """Write a picture of every page."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        os.environ |= {"XDG_CONFIG_HOME": f"{name}/config", "HOME": name, "SMARA_HOME": name}
        os.environ["SMARA_EMBED_IN_BACKGROUND"] = "false"
        os.chdir(name)
        Path("AGENTS.md").write_text("# Rules\n\n- Never edit files below generated/ by hand.\n")
        write_code(Path(name))
        store = f"{name}/shop.db"
        with smara.open(store, project="shop") as memory:
            examples = fill_shop(memory)
            memory.code.index(name)
        opened = partial(smara.open, store, project="shop")
        with http_site(store, Path(name), opened=opened, pages=panel_routes) as site:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            tab = Window(browser, site, examples).tab(width=1_200)
            for spec, address in addresses(examples):
                query = "?q=invoice" if spec.template == "search.html" else ""
                page = tab.open(f"{address}{query}")
                if spec.template == "graph.html":
                    page.locator("[data-count]").wait_for()
                page.wait_for_timeout(300)
                words = re.sub(r"\{.*?\}", "one", spec.path).strip("/").replace("/", "-")
                save(page.screenshot(), PLACE / f"panel-{words or 'today'}.png")
            browser.close()


def save(png: bytes, path: Path) -> None:
    """Write a picture in few colors."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
