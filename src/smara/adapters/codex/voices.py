"""Whose words a message of Codex holds: a person's, or the program's in the user's place.

Codex sends the model its surroundings, the instruction files and notices as messages of the
user. Such words are role "system" with a kind, so that they are never taken for a person's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from smara.messages.models import Part, Role, ThreadKind

# Opening words by which the program's own texts are known, and their kind.
_OPENINGS = (
    ("<environment_context>", "environment"),
    ("<environments_instructions>", "environment"),
    ("<user_instructions>", "instructions"),
    ("# AGENTS.md instructions", "instructions"),
    ("<INSTRUCTIONS>", "instructions"),
    ("<permissions instructions>", "instructions"),
    ("<skills_instructions>", "instructions"),
    ("<skill>", "skill"),
    ("<turn_aborted>", "interruption"),
    ("<subagent_notification>", "task_notification"),
    ("<user_shell_command>", "shell_output"),
    ("<user_action>", "notice"),
    ("<recommended_plugins>", "notice"),
    ("<codex_internal_context", "notice"),
    ("<goal_context>", "notice"),
    ("<hook_prompt", "notice"),
    ("<current_time_reminder>", "notice"),
    ("<image_resize_notice>", "notice"),
    ("<model_switch>", "notice"),
)
_OUTSIDE = re.compile(r"\A<external_[\w-]+>.*</external_[\w-]+>\Z", re.S)
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "developer": "system",
    "system": "system",
}


_PLACE = re.compile(r"<cwd>([^<\n]+)</cwd>|^\s*Current working directory: (.+)$", re.M)


def place_in(text: str) -> str:
    """The working folder that a text about the surroundings names; empty when it is none or names
    none.
    """
    if not text.lstrip().startswith("<environment_context>"):
        return ""
    found = _PLACE.search(text)
    return (found[1] or found[2]).strip() if found else ""


def program_kind(text: str) -> str | None:
    """The kind of a text that the program wrote, or None when a person may have."""
    stripped = text.strip()
    for opening, kind in _OPENINGS:
        if stripped.startswith(opening):
            return kind
    return (
        "additional_context"
        if stripped.startswith("<external_") and _OUTSIDE.match(stripped)
        else None
    )


def voice_of(role: str, parts: Sequence[Part], thread_kind: ThreadKind) -> tuple[Role, str | None]:
    """The role and the kind of a message item."""
    named = _ROLES.get(role, "system")
    if named == "system":
        return "system", role or "unnamed"
    if named == "assistant":
        return "assistant", None
    kinds = [program_kind(part.text) for part in parts if part.type == "text" and part.text.strip()]
    if kinds and all(kinds):
        return "system", kinds[0]
    if thread_kind == "compaction":
        return "system", "compaction_prompt"
    return "user", "agent_prompt" if thread_kind == "subagent" else None
