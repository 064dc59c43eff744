"""Teach the memory, read what is already there, and change its settings.

What only this machine can do stands here: reading the instruction files and the past sessions of
the repository around the server, and writing ``smara.toml``. Every page shows what its button would
do before it is pressed: the engine does it as a dry run, or on a copy of its settings. The
importers are loaded by the pages that need them, so that the first page comes sooner.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from difflib import ndiff
from pathlib import Path
from typing import Any

from smara.config import config_path, load_settings
from smara.core.startup.record import asdict, dataclass
from smara.errors import ConfigError, SmaraError
from smara.knowledge.models import TYPES
from smara.memory import Memory, open_memory
from smara.surfaces.http.shape import Shaper
from smara.surfaces.panel.page import Facts, PageSpec, Query

_MOST_CHANGES = 100
_LOOK_TIMES, _MOST_LOOK_SECONDS = 20, 60.0


@dataclass(frozen=True, slots=True)
class ControlSpec:
    """Describes a setting that the panel changes, and its values."""

    name: str
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0


CONTROLS: tuple[ControlSpec, ...] = (
    ControlSpec("moments", ("full", "start", "off")),
    ControlSpec("moment_start_tokens", least=200, most=10_000),
    ControlSpec("moment_statements", least=0, most=100),
    ControlSpec("freshness_drifted", ("tell", "hedge", "withhold")),
    ControlSpec("freshness_orphaned", ("tell", "hedge", "withhold")),
)


def teach(memory: Memory, query: Query) -> Facts:
    """Read the form to teach something, filled as the address says."""
    made = memory.memories.find(query["made"]) if query.get("made") else None
    return {
        "text": query.get("text", ""),
        "file": query.get("file", ""),
        "types": list(TYPES),
        "made": Shaper(memory).shape(made),
    }


def instruction_files(memory: Memory, query: Query) -> Facts:
    """Read what an import of the instruction files would do."""
    from smara.adapters.instructions.importer import import_instructions

    report = import_instructions(memory, is_dry_run=True)
    order = {"added": 0, "changed": 1, "returned": 2, "removed": 3, "stale": 4}
    changes = sorted(report.changes, key=lambda each: order.get(each.outcome, 9))
    return {
        "root": report.root,
        "files": [
            {"path": each.path, "host": each.host, "statements": each.statements}
            for each in report.files
        ],
        "counts": dict(report.counts),
        "isNothingNew": report.is_nothing_new,
        "changes": [asdict(each) for each in changes[:_MOST_CHANGES]],
        "more": max(0, len(changes) - _MOST_CHANGES),
        "unreadable": [{"path": path, "reason": why} for path, why in report.unreadable],
    }


def start(memory: Memory, query: Query) -> Facts:
    """Read what was found here, and how far it is read."""
    spaces, totals = memory.embeddings.status().spaces, memory.memories.totals()
    jobs = (each for each in memory.jobs.list(limit=100) if each.kind in ("import", "init"))
    return {
        "folder": os.getcwd(),
        "found": _look(memory) if query.get("whole") else None,
        "stored": {
            **memory.threads.totals(),
            "memories": totals.active,
            "toReview": totals.to_review,
        },
        "code": Shaper(memory).shape(memory.code.status()),
        "waiting": sum(each.waiting for each in spaces),
        "reading": Shaper(memory).shape(next(jobs, None)),
    }


_LOOKS: dict[tuple[str, ...], tuple[float, Facts]] = {}
"""What was found for a project in a folder, and until when that is shown."""


def _look(memory: Memory) -> Facts:
    """Return the sessions and instruction files around here.

    A look that took a second is shown for twenty, a minute at most: a page that follows every
    change must not walk the repository each time.
    """
    from smara.adapters.host import Here
    from smara.adapters.host_specs import TRANSCRIPTS
    from smara.adapters.importer import find
    from smara.adapters.instructions.importer import import_instructions

    key, now = (str(memory.settings.db), memory.project, os.getcwd()), time.monotonic()
    until, facts = _LOOKS.get(key, (0.0, {}))
    if now < until:
        return facts
    found, elsewhere = find(tuple(TRANSCRIPTS), Here(os.getcwd()))
    instructions = import_instructions(memory, is_dry_run=True)
    facts = {
        "sessions": [
            {"host": host, "files": count}
            for host, count in Counter(each.format for each in found).most_common()
        ],
        "elsewhere": elsewhere,
        "instructions": {
            "files": [each.path for each in instructions.files],
            "isNothingNew": instructions.is_nothing_new,
            "new": instructions.counts["added"] + instructions.counts["changed"],
        },
    }
    done = time.monotonic()
    _LOOKS[key] = (done + min(_MOST_LOOK_SECONDS, _LOOK_TIMES * (done - now)), facts)
    return facts


def settings(memory: Memory, query: Query) -> Facts:
    """Read the settings, and what others would change."""
    in_file = _settings_of_file()
    wished = {each.name: query[each.name] for each in CONTROLS if query.get(each.name)}
    level = memory.memories.trust().level
    wish = query.get("trust") or query.get("level")  # the form of the levels has its own name
    wished_level = int(wish) if wish in ("1", "2", "3", "4") else level
    now = memory.moments.preview()
    trouble = ""
    try:
        with opened_with(memory, _checked(wished)) as other:
            then = other.moments.preview(trust_level=wished_level)
    except ConfigError as error:
        then, trouble = now, str(error)
    current = {each.name: getattr(memory.settings, each.name) for each in CONTROLS}
    return {
        "controls": [
            {
                "name": each.name,
                "choices": each.choices,
                "least": each.least,
                "most": each.most,
                "value": wished.get(each.name, current[each.name]),
                "isElsewhere": in_file[each.name] != current[each.name],
            }
            for each in CONTROLS
        ],
        "trust": wished_level,
        "hasArms": memory.moments.has_arms,
        "path": str(config_path()),
        "trouble": trouble,
        "preview": {
            "before": now.tokens,
            "after": then.tokens,
            "text": then.text,
            "lines": [
                line
                for line in ndiff(now.text.splitlines(), then.text.splitlines())
                if line[0] in "+-"
            ],
        },
    }


def _checked(given: Mapping[str, str]) -> dict[str, Any]:
    """Return settings from texts, in their types and bounds."""
    checked: dict[str, Any] = {}
    for each in CONTROLS:
        if each.name not in given:
            continue
        text = given[each.name]
        if each.choices:
            checked[each.name] = text
        elif text.isascii() and text.isdigit() and each.least <= int(text) <= each.most:
            checked[each.name] = int(text)
        else:
            raise ConfigError(f"{each.name} is a number from {each.least} to {each.most}.")
    load_settings({}, **checked)  # refuses any other choice
    return checked


@contextmanager
def opened_with(memory: Memory, changes: Mapping[str, Any]) -> Iterator[Memory]:
    """Open the same store with some settings changed."""
    with open_memory(memory.settings.db, project=memory.project, **changes) as other:
        yield other


def _settings_of_file() -> dict[str, Any]:
    path = config_path()
    found = load_settings({"SMARA_CONFIG": str(path)} if path.is_file() else {})
    return {each.name: getattr(found, each.name) for each in CONTROLS}


def update_settings(memory: Memory, given: Mapping[str, str]) -> None:
    """Write settings into ``smara.toml``; its other lines stay as they are.

    Raises:
        ConfigError: If a value is wrong; nothing is written then.
    """
    path = config_path()
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for name, value in _checked(given).items():
        line = f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}"
        tables = [number for number, each in enumerate(lines) if each.lstrip().startswith("[")]
        end = tables[0] if tables else len(lines)
        places = [n for n in range(end) if re.match(rf"\s*{name}\s*=", lines[n])]
        lines[places[0] if places else end : places[0] + 1 if places else end] = [line]
    real = Path(os.path.realpath(path))  # a link to a folder of settings stays one
    real.parent.mkdir(parents=True, exist_ok=True)
    beside = real.with_name(f"{real.name}.new")
    beside.touch(mode=0o600)
    if real.exists():
        shutil.copymode(real, beside)
    beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.replace(beside, real)


def read_instructions(memory: Memory, given: Mapping[str, str]) -> None:
    """Import the instruction files of the repository."""
    from smara.adapters.instructions.importer import import_instructions

    import_instructions(memory, is_verified=given.get("is_verified") == "true")
    _LOOKS.clear()


def read_sessions(memory: Memory, given: Mapping[str, str]) -> None:
    """Begin to import past sessions; one import runs at a time."""
    from smara.adapters.host import Here
    from smara.adapters.host_specs import TRANSCRIPTS
    from smara.adapters.importer import BulkImport, find

    found, _ = find(tuple(TRANSCRIPTS), Here(os.getcwd()))
    # Hundreds of sessions must not become hundreds of calls of a model.
    own = open_memory(memory.settings.db, project=memory.project, models_enabled=False)
    with ExitStack() as stack:
        job = stack.enter_context(stack.enter_context(own).jobs.run("import"))
        if job is None:  # this or another process reads already
            return
        rest = stack.pop_all()

    def read() -> None:
        with suppress(SmaraError), rest:
            report = BulkImport(own).run(found, job.bar)
            job.facts["stored"] = sum(each.stored for each in report.reports)
            job.facts["memories"] = report.learned.memories

    threading.Thread(target=read, daemon=True).start()


ACTS: Mapping[str, Callable[[Memory, Mapping[str, str]], None]] = {
    "settings.update": update_settings,
    "instructions.import": read_instructions,
    "sessions.import": read_sessions,
}
"""What forms of the panel do that is not a route: it concerns this machine."""

SETUP: tuple[PageSpec, ...] = (
    PageSpec("/teach", "teach.html", teach, "Teach", key="n"),
    PageSpec("/teach/files", "instructions.html", instruction_files, "Instruction files"),
    PageSpec("/start", "start.html", start, "First steps", key="f"),
    PageSpec("/settings", "settings.html", settings, "Settings", key=","),
)
