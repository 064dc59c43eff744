"""Synthesize memories from the counts of many sessions.

A module is examined at its 5th, 10th, 20th, 50th and 100th session: by a model in one
call, or by rules. Once a week, files of different modules that change together are
examined. Each run happens once, however many workers there are, and is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from smara.actions.error_quote import error_quote, evidence_words
from smara.actions.paths import is_lock, is_test_of, module_of, modules_of
from smara.behavior.finalize import PROMPTS, ModelAccess, read_items
from smara.behavior.habits import FilePair, Habits, KnownFailure
from smara.behavior.models import MemoryDraft, wilson_lower_bound
from smara.behavior.scratchpad import quote
from smara.behavior.signals.co_access import Pair, coupled
from smara.behavior.signals.error_retry import KnownFix, is_lasting
from smara.behavior.signals.file_access import prefetch_draft
from smara.behavior.signals.registry import signal_saying
from smara.behavior.store import BehaviorStore
from smara.core import log
from smara.core.clock import Clock
from smara.core.escape import from_storable, to_storable
from smara.core.items import grouped
from smara.core.prompts import load_prompt
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import regex
from smara.database.database import Session
from smara.errors import SmaraError
from smara.knowledge.kind import CountedPart
from smara.knowledge.kinds import KINDS
from smara.knowledge.memories import Memories
from smara.knowledge.models import AddResult, Evidence, MemoryType, NewMemory
from smara.models.chat import ChatRequest, list_schema

THRESHOLDS = (5, 10, 20, 50, 100)
MOST_MEMORIES = 5
WEEK_MS = 7 * 86_400_000
_STRONG = 5
"""Less is left to the signal of files that change together, which knows the sessions one by one."""
_RESOLVED = 2
_SURE = 0.8
_COUNTED = {kind.type: kind.counted for kind in KINDS.values() if kind.counted is not None}
_NAMED = regex(r"`([^`]+)`")
_CONFIDENCE = 0.7
_SCHEMA = list_schema(
    {
        "type": {"type": "string", "enum": list(_COUNTED)},
        "content": {"type": "string"},
        "relatedFiles": {"type": "array", "items": {"type": "string"}},
        "confidence": {"type": "number"},
    }
)
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


@dataclass(frozen=True, eq=False)
class Synthesis:
    """Looks at what sessions have in common."""

    store: BehaviorStore
    habits: Habits
    memories: Memories
    clock: Clock
    models: Callable[[], ModelAccess | None]
    deadline_seconds: float

    def run(self, due: Sequence[tuple[str, int]]) -> list[Synthesized]:
        """Synthesize due modules and return the log.

        See :meth:`due`.
        """
        written = []
        for module, threshold in due:
            stats = self.stats(module)
            drafts, method = self._ask(stats)
            if drafts is None:
                # A signal may have become a memory of it already, in other words perhaps.
                drafts, method = [], "rules"
                with self.store.database.read() as session:
                    for draft in by_rule(stats):
                        signal = self.store.signal(session, *signal_saying(draft))
                        if signal is None or signal.memory_id is None:
                            drafts.append(draft)
                drafts = drafts[:MOST_MEMORIES]
            written.append(self._write(module, threshold, "threshold", drafts, method))
        return written

    def log(self, limit: int = 50) -> list[Synthesized]:
        rows = self.store.ask(
            self.store.rows,
            "SELECT module, trigger_count, mode, synthesized_at, memories_generated, "
            "method, detail"
            " FROM observer_synthesis_log WHERE project_no = :project ORDER BY "
            "synthesized_at DESC, module"
            " LIMIT ?",
            limit,
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
            self.store.sql(
                "SELECT module, count FROM observer_module_session_counts WHERE project_no = "
                ":project AND count >= ?"
                " ORDER BY last_at, module"
            ),
            (THRESHOLDS[0],),
        )
        if not rows:
            return []
        logged = self.store.rows(
            session,
            "SELECT module, trigger_count FROM observer_synthesis_log WHERE project_no = :project",
        )
        done = set(logged)
        found = [(row[0], max(each for each in THRESHOLDS if each <= row[1])) for row in rows]
        return [
            (from_storable(module), reached)
            for module, reached in found
            if (module, reached) not in done
        ][:limit]

    def weekly(self, week: int) -> list[Synthesized]:
        """Return co-changed files across modules without a memory.

        Two modules with all the pairs between them are one cluster: one call of a model, or rules.
        """
        across: list[tuple[str, FilePair]] = []
        for edge in self.habits.edges(limit=400):
            modules = sorted(modules_of((edge.file_a, edge.file_b)))
            if (
                edge.edit_session_count >= _STRONG
                and edge.promoted_at is None
                and len(modules) == 2
                and "tests" not in modules
                and not is_test_of(edge.file_a, edge.file_b)
                and not is_lock(edge.file_a)
                and not is_lock(edge.file_b)
            ):
                across.append((" + ".join(modules), edge))
        edits, total = self._edits([edge for _, edge in across])
        clusters = grouped(
            (name, (edge, draft))
            for name, edge in across
            if (draft := _coupled(edge, edits, total)) is not None
        )
        written = []
        for name, cluster in list(clusters.items())[:_MOST_CLUSTERS]:
            edges = [edge for edge, _ in cluster]
            sessions = max(edge.session_count for edge in edges)
            drafts, method = self._ask(ModuleStats(name, sessions, pairs=edges[:20]))
            if drafts is None:
                drafts = [draft for _, draft in cluster][:MOST_MEMORIES]
            written.append(self._write(name, 1_000 + week, "weekly", drafts, method))
        return written

    def stats(self, module: str) -> ModuleStats:
        """The files, pairs and errors of a module, the strongest first."""
        sessions, files = self.habits.module_files(module, limit=20)
        edges = [
            each
            for each in self.habits.edges(limit=400)
            if module in (module_of(each.file_a), module_of(each.file_b))
        ]
        # An error belongs to a module whose name or files stand in its command or its words.
        names = (f"{module}/", *(path for path, _ in files))
        errors = [
            each
            for each in self.habits.failures(200)
            if each.resolved >= _RESOLVED
            and any(name in f"{each.command} {each.error} {each.fix}" for name in names)
        ]
        return ModuleStats(
            module,
            sessions,
            files,
            [each for each in edges if each.edit_session_count >= _STRONG][:20],
            errors[:10],
            *self._edits(edges),
        )

    def _edits(self, edges: Sequence[FilePair]) -> tuple[dict[str, int], int]:
        """In how many sessions each file was changed, and in how many any was."""
        paths = sorted({path for each in edges for path in (each.file_a, each.file_b)})[:400]
        with self.store.database.read() as session:
            return self.store.edit_sessions(session, paths), self.store.changing_sessions(session)

    def _ask(self, stats: ModuleStats) -> tuple[list[MemoryDraft] | None, str]:
        models = self.models()
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
                    f"`{e.command}`: `{error_quote(e.error)}`: {e.sessions}, {e.how} `{e.fix}`"
                    for e in stats.errors
                ),
            }
        )
        try:
            reply = models.complete(
                ChatRequest(
                    text,
                    deadline_seconds=self.deadline_seconds,
                    max_output_tokens=900,
                    schema=_SCHEMA,
                ),
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
        now = self.clock.now_ms()
        times = self.store.ask(
            self.store.rows,
            "SELECT last_at FROM observer_module_session_counts"
            " WHERE project_no = :project AND module IN (:some)",
            some=[to_storable(each) for each in module.split(" + ")],
        )
        new = [
            NewMemory(
                each.content,
                each.type,
                "observer_inferred",
                confidence=_CONFIDENCE,
                files=each.files,
                modules=each.modules or modules_of(each.files),
                evidence=[Evidence(quote=quote) for quote in each.quotes],
                data=dict(each.data),
                taint=each.taint,
                tags=("synthesis",),
                seen_at=max((at for (at,) in times), default=None),
                session_id=f"synthesis:{module}:{trigger}"[:200],
            )
            for each in drafts
        ]
        entries: list[Synthesized] = []

        def also(session: Session, added: Sequence[AddResult]) -> None:
            memories = [each.memory for each in added if each.outcome == "added"]
            entry = Synthesized(
                module,
                trigger,
                mode,
                synthesized_at=now,
                memories_generated=len(memories),
                method=method,
                detail=", ".join(each.short_id for each in memories if each is not None),
            )
            logged = self.store.run(
                session,
                "INSERT INTO observer_synthesis_log (project_no, module, trigger_count, mode,"
                " synthesized_at, memories_generated, method, detail)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (project_no, module, trigger_count) DO NOTHING",
                *(to_storable(module), trigger, mode, now),
                *(len(memories), method, to_storable(entry.detail)),
            )
            if logged != 1:
                raise _AlreadyLogged
            entries.append(entry)
            for draft in drafts:
                for pair in (
                    ()
                    if KINDS[draft.type].is_about_reading
                    else combinations(sorted(draft.files), 2)
                ):
                    self.store.mark_edge_promoted(session, *pair, now_ms=now)

        try:
            self.memories.add_many(new, by="system", actor="smara", session_type="build", also=also)
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
            memories=entries[-1].memories_generated,
        )
        return entries[-1]


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
        evidence = f"read in more than 80 % of {total} sessions"
        yield prefetch_draft(stats.module, always, often, sessions=total, evidence=evidence)
    for edge in stats.pairs:
        is_new = edge.promoted_at is None and not is_test_of(edge.file_a, edge.file_b)
        if is_new and (draft := _coupled(edge, stats.edit_sessions, stats.all_sessions)):
            yield draft
    for error in stats.errors:
        if (
            error.how in ("command", "first")
            and error.fix
            and is_lasting(error.command, error.error, error.fix)
        ):
            fix = KnownFix(error.command, error.error, error.fix, error.tool, error.fingerprint)
            quotes = (evidence_words(f"$ {error.command}", error.error),)
            is_first = error.how == "first"
            yield fix.draft(quotes, error.occurrences, is_first=is_first, taint=("tool",))


def _coupled(
    edge: FilePair, edit_sessions: Mapping[str, int], all_sessions: int
) -> MemoryDraft | None:
    pair = Pair(edge.file_a, edge.file_b, edge.directional, together=edge.edit_session_count)
    return coupled(pair, edit_sessions, all_sessions)


def read_reply(text: str, stats: ModuleStats, prompt: str) -> Iterator[MemoryDraft]:
    """Parse a reply's memories: allowed types, given names."""
    for item in read_items(text):
        if item.get("type") not in _COUNTED or not isinstance(item.get("content"), str):
            continue
        content = " ".join(item["content"].split())
        names = _NAMED.findall(content)
        # A name that was not in the request was made up.
        is_made_up = not names or any(f"`{name}`" not in prompt for name in names)
        if is_made_up or not 20 <= len(content) <= 600:
            continue
        files = [
            path
            for path in item.get("relatedFiles") or []
            if isinstance(path, str) and f"`{path}`" in prompt
        ]
        kind: MemoryType = item["type"]
        parts: dict[CountedPart, Any] = {
            "module": stats.module,
            "files": files[:6],
            "first file": "".join(files[:1]),
            "further files": files[1:6],
            "sessions": stats.sessions,
        }
        data = {name: parts[part] for name, part in _COUNTED[kind].items()}
        if not all(data.values()):
            continue  # it names no files for what it says of files
        evidence = f"counted over {stats.sessions} sessions on {stats.module}: {', '.join(names)}"
        yield MemoryDraft(
            kind,
            content,
            (quote(evidence, 400),),
            files=tuple(files[:6]),
            modules=(stats.module,),
            data=data,
            taint=("tool",),
        )
