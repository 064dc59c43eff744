"""``smara ui --export``: one page that needs no server, complete and closed."""

from __future__ import annotations

import html
import json
import re
import stat
from pathlib import Path

import pytest

import smara
from tests.surfaces.panel_store import HOSTILE, fill
from tests.surfaces.shell import smara as smara_command


@pytest.fixture
def page(store, tmp_path):
    with smara.open(store) as memory:
        fill(memory)
        memory.memories.remember(f"Labels of the shop may hold {HOSTILE}")
    path = tmp_path / "shop.html"
    said = smara_command("--db", store, "ui", "--export", str(path))
    assert said.code == 0, said.err
    assert "private text" in said.out + said.err
    return path


def test_the_page_loads_nothing_and_forbids_it(page):
    text = html.unescape(page.read_text(encoding="utf-8").replace("&lt;", "‹"))
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", text)
    assert "url(" not in text
    assert "default-src 'none'" in text
    assert "<script>alert" not in text
    assert 'title="U+202E"' in text


def test_it_is_private_and_an_older_one_is_replaced(store, page):
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    page.write_text("old")
    assert smara_command("--db", store, "ui", "--export", str(page), "--language", "fr").code == 0
    assert '<html lang="fr">' in page.read_text(encoding="utf-8")
    assert [each.name for each in page.parent.glob("*.part")] == []


def test_it_has_every_record_beyond_the_first_page_of_a_list(store, tmp_path, monkeypatch):
    monkeypatch.setattr("smara.surfaces.panel.export._PAGE", 2)
    with smara.open(store) as memory:
        for subject in ("the printer", "the mail server", "the proxy", "the build", "the shop"):
            memory.memories.remember(f"Ask Ann before {subject} is restarted in the afternoon.")
        count = memory.memories.totals().active
    path = tmp_path / "all.html"
    said = smara_command("--db", store, "--json", "ui", "--export", str(path))
    counts = json.loads(said.out)["data"]["counts"]
    assert counts == {"memories": count, "tasks": 4, "sessions": 2}
    assert path.read_text(encoding="utf-8").count('class="card" data-item') == count


def test_a_folder_that_is_missing_is_told(store):
    said = smara_command("--db", store, "ui", "--export", "/nowhere/at/all.html")
    assert said.code != 0
    assert "Traceback" not in said.err
    assert not Path("/nowhere").exists()
