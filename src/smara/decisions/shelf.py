"""Find what people and commits decided about a message.

One reading for all doors: hooks ask a probe of the store, the library a session of either
database. A decision has its line since it was written. A commit is told by its note on lines that
stand today, or that it was undone: what a later commit replaced on purpose has no note.
Hooks load this module: it imports next to nothing.
"""

from __future__ import annotations

import json
import os

from smara.decisions.line import PLANNED_ON, SAID_ON
from smara.decisions.recall import MOST_ROWS, Core, MessageTerms, recall

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from smara.database.probe import SessionProbe, SqliteProbe

    RecordProbe = SqliteProbe | SessionProbe

_DECISION, _COMMIT = 7, 6
_LONG_REASON = 900
"""A commit with a longer reason speaks of many things."""
_MOST_FILES, _MOST_READ = 40, 1 << 20
WHY_DECIDED = "it was decided about what the message is about"
WHY_COMMITTED = "a commit gives the reason for what the message is about"
_EARLIER_ON = "- Earlier (superseded where the newer words above differ), said by a person on "
_IN_FORCE = "m.deprecated_at IS NULL"
_TELLABLE = (
    f"{_IN_FORCE} AND m.stale_at IS NULL AND (m.taint IN ('', '[]') OR m.is_verified = 1)"
    " AND (m.visibility <> 'personal' OR m.created_by = :actor)"
)
_DECISIONS = (
    "SELECT d.memory_no, d.line, m.files, d.thread_no, m.id, m.content FROM decisions d"
    " JOIN memories m ON m.no = d.memory_no AND m.version = d.version"
    " AND +m.project_no = d.project_no"
    " WHERE +d.project_no = :project AND d.memory_no IN ({}) AND {}"
)
_COMMITS = (
    "SELECT c.no, c.subject, c.reason, c.files, c.sha FROM commits c"
    " WHERE +c.project_no = :project AND c.no IN ({}) AND c.reason <> ''"
)


class DecisionShelf:
    """The decisions of a project that may be told to an actor."""

    around = 0.4

    def __init__(self, look: RecordProbe, actor: str, is_asked: bool = False) -> None:
        self.total = look.number("SELECT count(*) FROM decisions WHERE project_no = :project")
        self.rows: dict[int, tuple[Any, ...]] = {}
        self._look = look
        self._actor = actor
        self._is_asked = is_asked

    def match(self, term: str) -> Sequence[int]:
        """Return the decisions in whose exchange a term stands."""
        return self._look.records(term, _DECISION, MOST_ROWS)

    def cores(self, numbers: Sequence[int]) -> Mapping[int, Core]:
        """Return the lines of those that may be told."""
        state, values = (_IN_FORCE, {}) if self._is_asked else (_TELLABLE, {"actor": self._actor})
        rows = self._look.rows(_DECISIONS.format(_list(numbers), state), **values)
        if not self._is_asked:
            # A plan is the agent's words, of which a person approved the whole.
            rows = [row for row in rows if not row[1].startswith(PLANNED_ON)]
        self.rows |= {row[0]: row for row in rows}
        return {row[0]: Core([(f"{row[1]} {row[2]}", 1.0)], row[3]) for row in rows}

    def spread(self, terms: Sequence[str], thread_no: int) -> tuple[list[int], int]:
        """Count the messages of other sessions that hold each term, and all."""
        return self._look.spread(terms, thread_no)


class CommitShelf:
    """The commits with reasons behind a checked-out folder."""

    around = 0.2

    def __init__(self, look: RecordProbe, place: str) -> None:
        self.total = look.number("SELECT total FROM commit_state WHERE project_no = :project")
        self.notes: dict[int, dict[str, Any]] = {}
        self._look = look
        self._place = place

    def match(self, term: str) -> Sequence[int]:
        """Return the commits that have a term."""
        return self._look.records(term, _COMMIT, MOST_ROWS)

    def cores(self, numbers: Sequence[int]) -> Mapping[int, Core]:
        """Return the commits that explain lines, or were undone."""
        found = {}
        for no, subject, reason, files, sha in self._look.rows(_COMMITS.format(_list(numbers))):
            note = self._note(sha[:9], json.loads(files)[:_MOST_FILES])
            if note is not None:
                self.notes[no] = note
                found[no] = Core(
                    [(subject, 1.0), (reason, 0.5 if len(reason) <= _LONG_REASON else 0.2)], 0
                )
        return found

    def _note(self, short_id: str, paths: Sequence[str]) -> dict[str, Any] | None:
        marks = {f"path{number}": path for number, path in enumerate(paths)}
        rows = self._look.rows(
            "SELECT path, facts FROM line_notes WHERE project_no = :project AND place = :place"
            f" AND path IN ({', '.join(f':{name}' for name in marks)})",
            place=self._place,
            **marks,
        )
        found = [
            {**note, "path": path}
            for path, facts in rows
            for note in json.loads(facts)
            if note["id"] == short_id and self._holds(note, path)
        ]
        return min(found, key=lambda note: not note["is_undone"], default=None)

    def _holds(self, note: Mapping[str, Any], path: str) -> bool:
        """Return True if a file is as a note on its lines says."""
        from smara.commits.edit import marks, matching
        from smara.core.files import read_regular

        try:
            whole = os.path.join(self._place.partition(":")[2], path)
            text = read_regular(whole, _MOST_READ).decode("utf-8", "replace")
        except OSError:
            return False
        if note["is_undone"]:
            return bool(matching([note], text, None))
        return not marks(text.split("\n")).isdisjoint(note["lines"])

    def spread(self, terms: Sequence[str], thread_no: int) -> tuple[list[int], int]:
        """Count the messages that hold each term, and all."""
        return self._look.spread(terms, thread_no)


def records_about(look: RecordProbe, text: str, *, actor: str, place: str) -> list[dict[str, Any]]:
    """Return what was decided about a message: decisions first, the surest first.

    A decision that was changed since its line was written is left out.

    Args:
        look: The project's records.
        text: The message.
        actor: Who is told: personal wishes of others are left out.
        place: The checked-out folder whose commits count; empty for none.

    Returns:
        The kind, id, key, line, label and why of each.
    """
    decisions = DecisionShelf(look, actor)
    found = []
    message = MessageTerms(text)
    for hit in recall(message, decisions):
        _, line, _, _, memory_id, content = decisions.rows[hit.no]
        found.append(
            {
                "kind": "memory",
                "id": memory_id,
                "key": f"memory:{memory_id}",
                "line": line,
                "text": " ".join(content.split())[:60],
                "why": WHY_DECIDED,
            }
        )
    found = _newer_first(found)
    if place:
        commits = CommitShelf(look, place)
        for hit in recall(message, commits):
            from smara.commits.edit import with_place

            note = commits.notes[hit.no]
            facts = {name: note[name] for name in ("id", "key", "text")}
            line = with_place(note["line"], note["path"])
            found.append({**facts, "kind": "commit", "line": line, "why": WHY_COMMITTED})
    return found


def _newer_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order the two that are told by their dates, and mark the older one.

    Both are about one message: where they differ, the newer words hold.
    """
    dated = len(f"{SAID_ON}2026-01-08")
    pair = sorted(rows[:2], key=lambda each: each["line"][:dated], reverse=True)
    if len(pair) > 1 and pair[1]["line"][:dated] < pair[0]["line"][:dated]:
        pair[1]["line"] = pair[1]["line"].replace(SAID_ON, _EARLIER_ON, 1)
    return [*pair, *rows[2:]]


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, map(int, numbers)))
