"""A signal is one module: an invented one works at every door, an incomplete one is refused."""

from __future__ import annotations

import sys

import pytest

import smara
from smara.behavior.signals import registry
from smara.errors import ConfigError
from tests.agent_events import Script
from tests.surfaces.shell import smara as run_smara

INVENTED = """
from smara.behavior.models import MemoryDraft, Signal, SignalFinding

SIGNAL = Signal(
    18, "night_shift", 0.9, relevance=0.9, false_positives=0.1, targets=("gotcha",),
    least_sessions=2,
)


def detect(pad, pads):
    yield SignalFinding("night_shift", "night", "worked at night", step=0, is_proven=True)


def draft(finding, seen):
    content = f"The build is slow at night: {seen.sessions} sessions."
    return MemoryDraft("gotcha", content, ("built at 02:00: 14 min",))
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A temporary package of signals; yields a function that adds a module to it."""
    folder = tmp_path / "invented_signals"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))

    def add(name: str, text: str) -> str:
        (folder / f"{name}.py").write_text(text)
        return "invented_signals"

    yield add
    for name in [name for name in sys.modules if name.startswith("invented_signals")]:
        del sys.modules[name]


def work(memory, session: str, at: int) -> None:
    script = Script(session, at).edit("src/a/x.py").green().end()
    memory.behavior.observe_batch(script.events)
    memory.behavior.finalize(session)


def test_invented_signal_is_noticed_promoted_and_told_of(package, tmp_path, monkeypatch):
    invented = registry.read_signals(package("night_shift", INVENTED))
    monkeypatch.setattr(registry, "_BY_KIND", {**registry._BY_KIND, **invented})
    store = tmp_path / "m.db"
    with smara.open(store, project="default") as memory:
        for number, session in enumerate(("one", "two")):
            work(memory, session, 1_767_600_000_000 + number * 86_400_000)
        assert "night_shift" in {each.kind for each in memory.behavior.noticed("two")}
        [learned] = [m for m in memory.memories.to_review() if "at night" in m.content]
        assert learned.type == "gotcha"
        assert memory.search("slow build at night", sources=["memory"])[0].id
    monkeypatch.setenv("SMARA_DB", str(store))
    assert "night_shift" in run_smara("behavior", "signals", "two").out


@pytest.mark.parametrize("missing", ["SIGNAL", "detect", "draft"])
def test_signal_without_one_of_its_parts_is_refused_by_name(package, missing):
    text = INVENTED.replace(f"def {missing}(", "def _other(").replace(f"{missing} =", "_OTHER =")
    with pytest.raises(ConfigError, match=f"invented_signals.broken has no {missing}"):
        registry.read_signals(package("broken", text))


def test_two_signals_of_one_kind_are_refused(package):
    package("first", INVENTED)
    with pytest.raises(ConfigError, match="both the signal 'night_shift'"):
        registry.read_signals(package("second", INVENTED))
