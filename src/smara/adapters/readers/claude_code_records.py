"""Classify a Claude Code record: its thread, speaker and tool result.

Each sub-agent is a thread of its own below its session. Claude Code writes summaries,
reminders and command output in the user's place; such text gets the role "system" with a
kind. The structured copy of a tool result is reduced to the facts found nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from smara.adapters.blocks import usage_of, words_of
from smara.adapters.lines import list_in, mapping_in, text_in
from smara.adapters.records import bounded_id, shorten_title
from smara.core.memory_block import OPENING, without_memory_blocks
from smara.messages.models import NewThread, Part, Role, ThreadKind

_COMPACTION_AGENT = "acompact"

# Which of two titles is the better one: a person's choice, then the host's words, then the first
# prompt.
FROM_PROMPT, FROM_SUMMARY, FROM_HOST, FROM_PERSON = range(4)

_FACTS = {"cwd": "cwd", "gitBranch": "git_branch", "version": "version", "slug": "slug"}


class ClaudeThreads:
    """The threads of one file, as far as it has been read."""

    def __init__(self, file_stem: str) -> None:
        self._session_id = bounded_id(file_stem)
        self._threads: dict[str, NewThread] = {}
        self._ranks: dict[str, int] = {}
        self._roots: dict[str, str] = {}
        self._last_root = "unnamed"
        self._waiting_titles: dict[str, str] = {}

    @property
    def has_begun(self) -> bool:
        """True if any record was put into a thread."""
        return bool(self._threads)

    def of(self, record: Mapping[str, Any], created_at: int | None) -> NewThread:
        """Return the thread of a record, created with its first one."""
        self._session_id = bounded_id(text_in(record.get("sessionId")) or self._session_id)
        agent_id = self._agent_of(record)
        thread_id = self.agent_thread_id(agent_id) if agent_id else self._session_id
        if thread_id not in self._threads:
            metadata: dict[str, Any] = {"host": "claude-code"}
            metadata.update(
                {name: record[key] for key, name in _FACTS.items() if text_in(record.get(key))}
            )
            thread = NewThread(thread_id, metadata=metadata, created_at=created_at)
            if agent_id is not None:
                metadata["agent_id"] = agent_id
                is_compaction = agent_id.startswith(_COMPACTION_AGENT)
                thread = replace(
                    thread,
                    kind="compaction" if is_compaction else "subagent",
                    title="Compaction" if is_compaction else None,
                    parent_id=self._session_id,
                )
            self._threads[thread_id] = thread
        title = self._waiting_titles.pop(text_in(record.get("uuid")), None)
        if title is not None:
            self.suggest_title(thread_id, title, FROM_SUMMARY)
        return self._threads[thread_id]

    def agent_thread_id(self, agent_id: str) -> str:
        """The id of a sub-agent's thread below the current session."""
        return f"{self._session_id}/agent-{bounded_id(agent_id)}"

    def get(self, thread_id: str) -> NewThread:
        """Return the thread of an id."""
        return self._threads[thread_id]

    def suggest_title(self, thread_id: str, title: str, rank: int) -> NewThread:
        """Name the thread, unless it has a better name.

        Of equal ones the last counts, of prompts the first.
        """
        line = shorten_title(title)
        known_rank = self._ranks.get(thread_id, -1)
        if line and (rank > known_rank or rank == known_rank > FROM_PROMPT):
            self._ranks[thread_id] = rank
            self._threads[thread_id] = replace(self._threads[thread_id], title=line)
        return self._threads[thread_id]

    def await_leaf(self, leaf_uuid: str, title: str) -> None:
        """Hold a summary until its record shows which thread it names.

        A file may begin with summaries of other sessions; those are never claimed.
        """
        self._waiting_titles[leaf_uuid] = title

    def note(self, thread_id: str, **facts: Any) -> NewThread:
        """Add facts to a thread's metadata; what is known already stays."""
        thread = self._threads[thread_id]
        fresh = {key: value for key, value in facts.items() if value and key not in thread.metadata}
        if fresh:
            self._threads[thread_id] = replace(thread, metadata={**thread.metadata, **fresh})
        return self._threads[thread_id]

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


_COMMAND_ARGUMENTS = re.compile(r"<command-args>\s*[^\s<]")

# Opening words by which the program's own texts are known, and their kind.
_PROGRAM_OPENINGS = (
    ("<local-command-caveat>", "local_command_caveat"),
    (
        "Caveat: The messages below were generated by the user while running local commands",
        "local_command_caveat",
    ),
    ("<local-command-stdout>", "local_command_output"),
    ("<local-command-stderr>", "local_command_output"),
    ("<bash-stdout>", "shell_output"),
    ("<bash-stderr>", "shell_output"),
    ("<task-notification>", "task_notification"),
    ("[Request interrupted by user", "interruption"),
)


def program_kind(text: str) -> str | None:
    """Return the kind of a program's text; None for a person's."""
    stripped = text.strip()
    for opening, kind in _PROGRAM_OPENINGS:
        if stripped.startswith(opening):
            return kind
    if stripped.startswith("<system-reminder>") and stripped.endswith("</system-reminder>"):
        return "system_reminder"
    if stripped.startswith(
        ("<command-name>", "<command-message>")
    ) and not _COMMAND_ARGUMENTS.search(stripped):
        return "local_command"
    return None


def voice_of_user_record(
    record: Mapping[str, Any], parts: Sequence[Part], thread_kind: ThreadKind
) -> tuple[Role, str | None]:
    """The role and the kind of a record of type "user"."""
    texts = [part.text for part in parts if part.type == "text" and part.text.strip()]
    kinds = [program_kind(text) for text in texts]
    program = kinds[0] if kinds and all(kinds) else None
    if record.get("isCompactSummary") is True:
        return "system", "compaction_summary"
    if any(part.type == "tool_result" for part in parts):
        return ("user", None) if texts and program is None else ("tool", program)
    if record.get("isMeta") is True:
        return "system", program or "meta"
    if record.get("isVisibleInTranscriptOnly") is True:
        return "system", program or "transcript_only"
    if program is not None:
        return "system", program
    if thread_kind == "compaction":
        return "system", "compaction_prompt"
    if thread_kind == "subagent":
        return "user", "agent_prompt"
    first = texts[0].lstrip() if texts else ""
    if first.startswith(("<command-name>", "<command-message>")):
        return "user", "command"
    return "user", "shell_input" if first.startswith("<bash-input>") else None


def voice_of_assistant_record(record: Mapping[str, Any]) -> tuple[Role, str | None]:
    """Return role and kind of a record of type "assistant".

    The program's stand-ins are its own.
    """
    if record.get("isApiErrorMessage") is True:
        return "system", "api_error"
    if mapping_in(record.get("message")).get("model") == "<synthetic>":
        return "system", "synthetic"
    return "assistant", None


def words_of_others(attachment: Mapping[str, Any], kind: str) -> str:
    """The words of an attachment, without what memory itself told the agent.

    Of a hook the host keeps what it answered, word for word, and beside it what of this was told.
    """
    if not kind.startswith("hook_"):
        return words_of(attachment)
    return (
        ""
        if OPENING in text_in(attachment.get("stdout"))
        else without_memory_blocks(words_of(attachment))
    )


_SHORT_CHARS = 200
_MAX_FACTS = 24
_OUTPUTS = ("stdout", "stderr")
_ALWAYS = ("filePath", "agentId", "backgroundTaskId", "status", "url")
TOKEN_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


def compact_result(result: Any, parts: Sequence[Part]) -> tuple[dict[str, Any], tuple[Part, ...]]:
    """Return a result's facts for metadata, and its otherwise missing output."""
    words = "\n".join(part.text for part in parts)
    call_id = next((part.call_id for part in parts if part.type == "tool_result"), None)
    if isinstance(result, str):
        message = result.removeprefix("Error: ").strip()
        if not message or message in words:
            return {}, ()
        if len(message) <= _SHORT_CHARS:
            return {"message": message}, ()
        return {}, (Part("tool_result", message, name="message", call_id=call_id),)
    outputs = []
    for name in _OUTPUTS:
        output = text_in(mapping_in(result).get(name))
        if (
            len(output) > _SHORT_CHARS
            and not output.startswith("data:")
            and output.strip() not in words
            and " ".join(output.split()) not in " ".join(words.split())
        ):
            outputs.append(Part("tool_result", output, name=name, call_id=call_id))
    return _facts(mapping_in(result), words), tuple(outputs)


def _facts(result: Mapping[str, Any], words: str, depth: int = 0) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for key, value in list(result.items())[:_MAX_FACTS]:
        name = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1], key).lower()[:60]
        if key == "usage":
            facts[name] = usage_of(value, TOKEN_COUNTS)
        elif key == "structuredPatch":
            lines = [
                text_in(line)
                for hunk in list_in(value)
                for line in list_in(mapping_in(hunk).get("lines"))
            ]
            counts = {
                "hunks": len(list_in(value)),
                "added": sum(line.startswith("+") for line in lines),
                "removed": sum(line.startswith("-") for line in lines),
            }
            facts["patch"] = counts if counts["hunks"] else {}
        elif isinstance(value, dict):
            facts[name] = _facts(value, words, depth + 1) if depth < 2 else {}
        elif isinstance(value, list):
            facts[f"{name}_count"] = len(value)
        elif not isinstance(value, str):
            facts[name] = value
        elif len(value) > _SHORT_CHARS:
            facts[f"{name}_chars"] = len(value)
        elif key in _ALWAYS or value.strip() not in words:
            facts[name] = value
    return {name: value for name, value in facts.items() if value not in (None, False, 0, "", {})}
