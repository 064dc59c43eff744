"""An incomplete signal is refused by name; one that is complete: `tests/stories`."""

from __future__ import annotations

import sys

import pytest

from smara.behavior.signals import registry
from smara.errors import ConfigError

INVENTED = """
from smara.behavior.models import MemoryDraft, Signal, SignalFinding

SIGNAL = Signal(
    18, "night_shift", 0.9, relevance=0.9, false_positives=0.1, targets=("gotcha",),
    least_sessions=2, quotes=(), learned_in=("build",),
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


@pytest.mark.parametrize("missing", ["SIGNAL", "detect", "draft"])
def test_signal_without_one_of_its_parts_is_refused_by_name(package, missing):
    text = INVENTED.replace(f"def {missing}(", "def _other(").replace(f"{missing} =", "_OTHER =")
    with pytest.raises(ConfigError, match=f"invented_signals.broken has no {missing}"):
        registry.read_signals(package("broken", text))


def test_two_signals_of_one_kind_are_refused(package):
    package("first", INVENTED)
    with pytest.raises(ConfigError, match="both the signal 'night_shift'"):
        registry.read_signals(package("second", INVENTED))
