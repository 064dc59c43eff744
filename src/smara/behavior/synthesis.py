"""Synthesize memories from the counts of many sessions.

A module is examined at its 5th, 10th, 20th, 50th and 100th session: by a model in one
call, or by rules. Once a week, files of different modules that change together are
examined. Each run happens once, however many workers there are, and is logged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from smara.actions.paths import is_lock, is_test_of, module_of
from smara.behavior.habits import FilePair, Habits, KnownFailure
from smara.behavior.models import MemoryDraft, wilson_lower_bound
from smara.behavior.phrase import PROMPTS, ModelAccess
from smara.behavior.scratchpad import code, quote
from smara.behavior.signals.co_access import Pair, coupled
from smara.behavior.signals.error_retry import is_lasting
from smara.behavior.store import BehaviorStore
from smara.core import log
from smara.core.clock import Clock
from smara.core.escape import from_storable, to_storable
from smara.core.prompts import load_prompt
from smara.database.database import Session
from smara.errors import SmaraError
from smara.knowledge.memories import Memories
from smara.knowledge.models import AddResult, Evidence, MemoryType, NewMemory
from smara.models.chat import ChatRequest

THRESHOLDS = (5, 10, 20, 50, 100)
MOST_MEMORIES = 5
WEEK_MS = 7 * 86_400_000
_STRONG = 5
"""Less is left to the signal of files that change together, which knows the sessions one by one."""
_RESOLVED = 2
_SURE = 0.8
_SIGNAL_OF = {
    "prefetch_pattern": ("file_access", "module_trigger"),
    "error_pattern": ("error_retry", "fingerprint"),
}
"""The signal that would have said the same, and the field that holds its key."""
_TYPES: tuple[MemoryType, ...] = (
    "prefetch_pattern",
    "causal_dependency",
    "gotcha",
    "error_pattern",
    "module_insight",
)
_NAMED = re.compile(r"`([^`]+)`")
_CONFIDENCE = 0.7
_MOST_CLUSTERS = 5


@dataclass(frozen=True, slots=True)
class Synthesized:
    """A log entry: subject, method, and number of memories."""

    module: str
    trigger_count: int
    mode: str
    synthesized_at: int
    memories_generated: int
    method: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ModuleStats:
    """A module's rolling counts."""

    module: str
    sessions: int
    files: list[tuple[str, int]] = field(default_factory=list)
    pairs: list[FilePair] = field(default_factory=list)
    errors: list[KnownFailure] = field(default_factory=list)
    edit_sessions: dict[str, int] = field(default_factory=dict)
    all_sessions: int = 0


class Synthesis:
    """Looks at what sessions have in common."""

    def __init__(
        self,
        store: BehaviorStore,
        habits: Habits,
        memories: Memories,
        clock: Clock,
        models: Callable[[], ModelAccess | None],
        deadline_seconds: float,
    ) -> None:
        self._store = store
        self._habits = habits
        self._memories = memories
        self._clock = clock
        self._models = models
        self._deadline = deadline_seconds

    def run(self, due: Sequence[tuple[str, int]]) -> list[Synthesized]:
        """Synthesize due modules and return the log.

        See :meth:`due`.
        """
        return [self._module(module, threshold) for module, threshold in due]

    def log(self, limit: int = 50) -> list[Synthesized]:
        with self._store.database.read() as session:
            rows = session.all(
                self._store.sql(
                    "SELECT module, trigger_count, mode, synthesized_at, memories_generated, "
                    "method, detail"
                    " FROM observer_synthesis_log WHERE project_no = :project ORDER BY "
                    "synthesized_at DESC, module"
                    " LIMIT ?"
                ),
                (limit,),
            )
        return [
            Synthesized(
                from_storable(row[0]),
                row[1],
                row[2],
                synthesized_at=row[3],
                memories_generated=row[4],
                method=row[5],
                detail=from_storable(row[6]),
            )
            for row in rows
        ]

    def due(self, session: Session, limit: int = 3) -> list[tuple[str, int]]:
        """Return (module, threshold) pairs without a log entry."""
        rows = session.all(
            self._store.sql(
                "SELECT module, count FROM observer_module_session_counts WHERE project_no = "
                ":project AND count >= ?"
                " ORDER BY last_at, module"
            ),
            (THRESHOLDS[0],),
        )
        if not rows:
            return []
        statement = (
            "SELECT module, trigger_count FROM observer_synthesis_log WHERE project_no = :project"
        )
        done = set(session.all(self._store.sql(statement)))
        found = [(row[0], max(each for each in THRESHOLDS if each <= row[1])) for row in rows]
        return [
            (from_storable(module), reached)
            for module, reached in found
            if (module, reached) not in done
        ][:limit]

    def _module(self, module: str, threshold: int) -> Synthesized:
        stats = self.stats(module)
        drafts, method = self._asked(stats)
        if drafts is None:
            drafts, method = self._untold(by_rule(stats))[:MOST_MEMORIES], "rules"
        return self._write(module, threshold, "threshold", drafts, method)

    def _untold(self, drafts: Iterable[MemoryDraft]) -> list[MemoryDraft]:
        """Those that no signal has become a memory of already, in other words perhaps."""
        found: list[MemoryDraft] = []
        with self._store.database.read() as session:
            for draft in drafts:
                kind, name = _SIGNAL_OF.get(draft.type, ("", ""))
                known = (
                    self._store.signal(session, kind, str(draft.data.get(name))) if name else None
                )
                if known is None or known.memory_id is None:
                    found.append(draft)
        return found

    def weekly(self, week: int) -> list[Synthesized]:
        """Return co-changed files across modules without a memory.

        Two modules with all the pairs between them are one cluster: one call of a model, or rules.
        """
        across = self._across()
        edits, total = self._edits(across)
        clusters: dict[str, tuple[list[FilePair], list[MemoryDraft]]] = {}
        for edge in across:
            if (made := _coupled(edge, edits, total)) is not None:
                name = " + ".join(
                    sorted({str(module_of(edge.file_a)), str(module_of(edge.file_b))})
                )
                edges, drafts = clusters.setdefault(name, ([], []))
                edges.append(edge)
                drafts.append(made)
        return [
            self._cluster(name, week, edges, drafts=drafts)
            for name, (edges, drafts) in list(clusters.items())[:_MOST_CLUSTERS]
        ]

    def _cluster(
        self, name: str, week: int, edges: Sequence[FilePair], drafts: Sequence[MemoryDraft]
    ) -> Synthesized:
        sessions = max(edge.session_count for edge in edges)
        asked, method = self._asked(ModuleStats(name, sessions, pairs=list(edges[:20])))
        return self._write(
            name,
            1_000 + week,
            "weekly",
            (drafts if asked is None else asked)[:MOST_MEMORIES],
            method,
        )

    def stats(self, module: str) -> ModuleStats:
        """The files, pairs and errors of a module, the strongest first."""
        with self._store.database.read() as session:
            row = session.one(
                self._store.sql(
                    "SELECT count FROM observer_module_session_counts WHERE project_no = :project "
                    "AND module = ?"
                ),
                (to_storable(module),),
            )
            files = session.all(
                self._store.sql(
                    "SELECT file_path, session_count FROM observer_module_files WHERE project_no "
                    "= :project AND"
                    " module = ?"
                    " ORDER BY session_count DESC, file_path LIMIT 20"
                ),
                (to_storable(module),),
            )
        edges = [
            each
            for each in self._habits.edges(limit=400)
            if module in (module_of(each.file_a), module_of(each.file_b))
        ]
        errors = [each for each in self._habits.failures(200) if each.resolved >= _RESOLVED]
        return ModuleStats(
            module,
            int(row[0]) if row else 0,
            [(from_storable(each[0]), each[1]) for each in files],
            [each for each in edges if each.edit_session_count >= _STRONG][:20],
            errors[:10],
            *self._edits(edges),
        )

    def _edits(self, edges: Sequence[FilePair]) -> tuple[dict[str, int], int]:
        """In how many sessions each file was changed, and in how many any was."""
        paths = sorted({path for each in edges for path in (each.file_a, each.file_b)})[:400]
        with self._store.database.read() as session:
            return self._store.edit_sessions(session, paths), self._store.changing_sessions(session)

    def _across(self) -> list[FilePair]:
        edges = [
            each for each in self._habits.edges(limit=400) if each.edit_session_count >= _STRONG
        ]
        modules = [(each, module_of(each.file_a), module_of(each.file_b)) for each in edges]
        return [
            each
            for each, one, other in modules
            if one
            and other
            and one != other
            and each.promoted_at is None
            and not is_test_of(each.file_a, each.file_b)
            and not is_lock(each.file_a)
            and not is_lock(each.file_b)
            and "tests" not in (one, other)
        ]

    def _asked(self, stats: ModuleStats) -> tuple[list[MemoryDraft] | None, str]:
        models = self._models()
        if models is None or models.is_offline:
            return None, "rules"
        prompt = load_prompt(PROMPTS, "synthesize")
        text = prompt.render(
            {
                "module": stats.module,
                "sessions": str(stats.sessions),
                "files": _lines(f"`{path}`: {count}" for path, count in stats.files),
                "pairs": _lines(
                    f"`{e.file_a}` + `{e.file_b}`: {e.edit_session_count}" for e in stats.pairs
                ),
                "errors": _lines(
                    f"`{e.command}`: `{e.error}`: {e.sessions}, {e.how} `{e.fix}`"
                    for e in stats.errors
                ),
            }
        )
        try:
            reply = models.complete(
                ChatRequest(text, deadline_seconds=self._deadline, max_output_tokens=900),
                "behavior",
            )
        except SmaraError as error:
            log.warning("behavior.not_synthesized", module=stats.module, error=error.code)
            return None, "rules"
        return list(read_reply(reply.text, stats, text))[:MOST_MEMORIES], f"model v{prompt.version}"

    def _write(
        self, module: str, trigger: int, mode: str, drafts: Sequence[MemoryDraft], method: str
    ) -> Synthesized:
        """Write memories and log in one transaction, if first."""
        now = self._clock.now_ms()
        new = [
            NewMemory(
                each.content,
                each.type,
                "observer_inferred",
                confidence=_CONFIDENCE,
                files=each.files,
                modules=each.modules,
                evidence=[Evidence(quote=said) for said in each.quotes],
                data=dict(each.data),
                taint=each.taint,
                tags=("synthesis",),
                session_id=f"synthesis:{module}:{trigger}"[:200],
            )
            for each in drafts
        ]
        entry: list[Synthesized] = []

        def also(session: Session, added: Sequence[AddResult]) -> None:
            count = sum(each.outcome == "added" for each in added)
            told = ", ".join(
                each.memory.short_id for each in added if each.outcome == "added" and each.memory
            )
            entry.append(
                Synthesized(
                    module,
                    trigger,
                    mode,
                    synthesized_at=now,
                    memories_generated=count,
                    method=method,
                    detail=told,
                )
            )
            if not self._put_log(session, entry[0]):
                raise _AlreadyLogged
            for draft in drafts:
                for pair in (
                    combinations(sorted(draft.files), 2) if draft.type != "prefetch_pattern" else ()
                ):
                    self._store.mark_edge_promoted(session, *pair, now_ms=now)

        try:
            self._memories.add_many(
                new, by="system", actor="smara", session_type="build", also=also
            )
        except _AlreadyLogged:
            return Synthesized(
                module,
                trigger,
                mode,
                synthesized_at=now,
                memories_generated=0,
                method=method,
                detail="somebody else did it",
            )
        log.event(
            "behavior.synthesized",
            module=module,
            trigger=trigger,
            memories=entry[0].memories_generated,
        )
        return entry[0]

    def _put_log(self, session: Session, entry: Synthesized) -> bool:
        return (
            session.run(
                self._store.sql(
                    "INSERT INTO observer_synthesis_log (project_no, module, trigger_count, mode, "
                    "synthesized_at,"
                    " memories_generated, method, detail) VALUES (:project, ?, ?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (project_no, module, trigger_count) DO NOTHING"
                ),
                (
                    to_storable(entry.module),
                    entry.trigger_count,
                    entry.mode,
                    entry.synthesized_at,
                    entry.memories_generated,
                    entry.method,
                    to_storable(entry.detail),
                ),
            )
            == 1
        )


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "- none"


class _AlreadyLogged(Exception):
    """The log has the entry already."""


def by_rule(stats: ModuleStats) -> Iterator[MemoryDraft]:
    """Derive a module's memories from counts, without a model.

    Files to read, files that go together, errors with their fix.
    """
    total = stats.sessions
    always = [
        path
        for path, count in stats.files
        if count / max(1, total) > 0.8 and wilson_lower_bound(count, total) >= _SURE
    ][:10]
    often = [path for path, count in stats.files if 0.5 < count / max(1, total) <= 0.8][:10]
    if 2 <= len(always) <= 10:
        content = (
            f"Work on {code(stats.module)} reads {', '.join(map(code, always))} in nearly every "
            "session"
            f" ({total} counted)."
        )
        data = {
            "module_trigger": stats.module,
            "always_read_files": always,
            "frequently_read_files": often,
            "session_count": total,
        }
        yield MemoryDraft(
            "prefetch_pattern",
            content,
            (f"read in more than 80 % of {total} sessions",),
            files=tuple(always),
            modules=(stats.module,),
            data=data,
        )
    for edge in stats.pairs:
        made = (
            None
            if is_test_of(edge.file_a, edge.file_b)
            else _coupled(edge, stats.edit_sessions, stats.all_sessions)
        )
        if made is not None and edge.promoted_at is None:
            yield made
    for error in stats.errors:
        if (
            error.how in ("command", "first")
            and error.fix
            and is_lasting(error.command, error.error, error.fix)
        ):
            yield _error(error)


def _coupled(
    edge: FilePair, edit_sessions: Mapping[str, int], all_sessions: int
) -> MemoryDraft | None:
    pair = Pair(edge.file_a, edge.file_b, edge.directional, together=edge.edit_session_count)
    return coupled(pair, edit_sessions, all_sessions)


def _error(error: KnownFailure) -> MemoryDraft:
    fix = f"running {code(str(error.fix))} first" if error.how == "first" else code(str(error.fix))
    content = f"Running {code(error.command)} failed with {code(error.error)}; what worked: {fix}."
    data = {
        "error": error.error,
        "fix": str(error.fix),
        "tool": error.tool,
        "command": error.command,
        "occurrences": error.occurrences,
        "fingerprint": error.fingerprint,
    }
    return MemoryDraft(
        "error_pattern",
        content,
        (f"$ {error.command}\n{error.error}",),
        files=(),
        modules=(),
        data=data,
        taint=("tool",),
    )


def read_reply(text: str, stats: ModuleStats, asked: str) -> Iterator[MemoryDraft]:
    """Parse a reply's memories: allowed types, given names."""
    start, end = text.find("["), text.rfind("]")
    try:
        items = json.loads(text[start : end + 1]) if 0 <= start < end else []
    except ValueError:
        items = []
    for item in items if isinstance(items, list) else []:
        if (
            not isinstance(item, dict)
            or item.get("type") not in _TYPES
            or not isinstance(item.get("content"), str)
        ):
            continue
        content = " ".join(item["content"].split())
        names = _NAMED.findall(content)
        files = [
            path
            for path in item.get("relatedFiles") or []
            if isinstance(path, str) and f"`{path}`" in asked
        ]
        # A name that was not in the request was made up.
        if (
            not names
            or any(f"`{name}`" not in asked for name in names)
            or not 20 <= len(content) <= 600
        ):
            continue
        kind: MemoryType = (
            "gotcha" if item["type"] in ("prefetch_pattern", "causal_dependency") else item["type"]
        )
        quotes = (
            quote(
                f"counted over {stats.sessions} sessions on {stats.module}: {', '.join(names)}", 400
            ),
        )
        yield MemoryDraft(
            kind,
            content,
            quotes,
            files=tuple(files[:6]),
            modules=(stats.module,),
            data={},
            taint=("tool",),
        )
