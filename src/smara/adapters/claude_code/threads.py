"""Which thread a transcript record belongs to, and what is known about that thread.

A session is a conversation; each sub-agent is a thread of its own below it, whether
its records stand in a file of their own, in the session's file, or inside progress
records; the agents that write compaction summaries are kept apart by their kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from smara.adapters.decoding import text_in
from smara.adapters.records import bounded_id
from smara.adapters.titles import shorten
from smara.messages.models import NewThread, ThreadKind

_COMPACTION_AGENT = "acompact"

# Which of two titles is the better one: a person's choice, then the host's words, then the first
# prompt.
FROM_PROMPT, FROM_SUMMARY, FROM_HOST, FROM_PERSON = range(4)

_FACTS = {"cwd": "cwd", "gitBranch": "git_branch", "version": "version", "slug": "slug"}


class Threads:
    """The threads of one file, as far as it has been read."""

    def __init__(self, file_stem: str) -> None:
        self._session_id = bounded_id(file_stem)
        self._known: dict[str, NewThread] = {}
        self._ranks: dict[str, int] = {}
        self._roots: dict[str, str] = {}
        self._last_root = "unnamed"
        self._waiting_titles: dict[str, str] = {}

    @property
    def has_begun(self) -> bool:
        """Whether any record has been put into a thread yet."""
        return bool(self._known)

    def of(self, record: Mapping[str, Any], created_at: int | None) -> NewThread:
        """The thread of a record; made when it is the first of its thread."""
        self._session_id = bounded_id(text_in(record.get("sessionId")) or self._session_id)
        agent_id = self._agent_of(record)
        thread_id = f"{self._session_id}/agent-{agent_id}" if agent_id else self._session_id
        if thread_id not in self._known:
            self._known[thread_id] = self._begin(thread_id, agent_id, record, created_at)
        title = self._waiting_titles.pop(text_in(record.get("uuid")), None)
        if title is not None:
            self.suggest_title(thread_id, title, FROM_SUMMARY)
        return self._known[thread_id]

    def agent_thread_id(self, agent_id: str) -> str:
        """The id of a sub-agent's thread below the current session."""
        return f"{self._session_id}/agent-{bounded_id(agent_id)}"

    def get(self, thread_id: str) -> NewThread:
        """What is known of a thread by now."""
        return self._known[thread_id]

    def suggest_title(self, thread_id: str, title: str, rank: int) -> NewThread:
        """Name the thread, unless it has a better name; of equal ones the last, of prompts the
        first.
        """
        line = shorten(title)
        known_rank = self._ranks.get(thread_id, -1)
        if line and (rank > known_rank or rank == known_rank > FROM_PROMPT):
            self._ranks[thread_id] = rank
            self._known[thread_id] = replace(self._known[thread_id], title=line)
        return self._known[thread_id]

    def await_leaf(self, leaf_uuid: str, title: str) -> None:
        """Keep a summary until the record it speaks of shows which thread it names.

        A file may begin with summaries of other sessions; those are never claimed.
        """
        self._waiting_titles[leaf_uuid] = title

    def note(self, thread_id: str, **facts: Any) -> NewThread:
        """Add facts to a thread's metadata; what is known already stays."""
        thread = self._known[thread_id]
        fresh = {key: value for key, value in facts.items() if value and key not in thread.metadata}
        if fresh:
            self._known[thread_id] = replace(thread, metadata={**thread.metadata, **fresh})
        return self._known[thread_id]

    def _begin(
        self,
        thread_id: str,
        agent_id: str | None,
        record: Mapping[str, Any],
        created_at: int | None,
    ) -> NewThread:
        metadata: dict[str, Any] = {"host": "claude-code"}
        metadata.update(
            {name: record[key] for key, name in _FACTS.items() if text_in(record.get(key))}
        )
        if agent_id is None:
            return NewThread(thread_id, metadata=metadata, created_at=created_at)
        metadata["agent_id"] = agent_id
        is_compaction = agent_id.startswith(_COMPACTION_AGENT)
        kind: ThreadKind = "compaction" if is_compaction else "subagent"
        title = "Compaction" if is_compaction else None
        return NewThread(
            thread_id,
            None,
            title,
            metadata=metadata,
            kind=kind,
            parent_id=self._session_id,
            created_at=created_at,
        )

    def _agent_of(self, record: Mapping[str, Any]) -> str | None:
        agent_id = text_in(record.get("agentId"))
        if agent_id:
            return bounded_id(agent_id)
        if record.get("isSidechain") is not True:
            return None
        # Older versions write side chains without a name into the session's file; a chain
        # is then named after its first record, which its other records lead back to.
        uuid, parent = text_in(record.get("uuid")), text_in(record.get("parentUuid"))
        if not parent and uuid:
            self._last_root = bounded_id(uuid)
        root = self._roots.get(parent, self._last_root)
        if uuid:
            self._roots[uuid] = root
        return root
