"""Read tool calls as actions: which files, commands, searches, pages.

Agents read a file with Read, cat or sed -n: each becomes the same action.
"""

from __future__ import annotations

import posixpath
import shlex
from functools import lru_cache

from smara.actions.commands import read_command
from smara.actions.models import Action, Command, Verb
from smara.actions.paths import project_path
from smara.core.events import HostEvent
from smara.core.startup.regex import regex
from smara.secrets import redact

PLAN_LISTS = frozenset({"TodoWrite", "update_plan", "todo_write", "write_todos", "todowrite"})
"""Tools that write a whole plan."""
PLAN_MAKES, PLAN_CHANGES = "TaskCreate", "TaskUpdate"
"""Tools that make or change one item of a plan."""
_IN_PLACE = regex(r"\bsed\s+(?:-\w+\s+)*-i\S*\s")
_WRITTEN = regex(
    r"(?:^|[;&\s])(?:cat|tee|echo|printf)\b[^|;&\n]*?>{1,2}\s*([\w./@+-]+)"
    r"|\btee\s+(?:-a\s+)?([\w./@+-]+)"
)
_MOVED = regex(r"(?:^|&&|[;|(\n])\s*(?:cd|pushd)\s+(\"[^\"]*\"|'[^']*'|[^\s;&|)]+)")
_NO_NAME = regex(r"[*?$`<>(){}\[\];|&~]")
"""What a shell makes other words of: no name of a file or folder."""
_RANGE = regex(r"^['\"]?[\d,$p]+['\"]?$")
_MOST_FILES = 20
_REDACTED = 4_000


def actions_of(event: HostEvent, root: str) -> list[Action]:
    """List what a tool call did, in order."""
    tool, given = event.tool, event.tool_input
    if tool == "Bash":
        return _shell(event, root)
    if tool in ("Edit", "Write", "Read"):
        verb: Verb = "read" if tool == "Read" else "edit"
        named = (
            given.get("files")
            if isinstance(given.get("files"), list | tuple)
            else [given.get("file_path")]
        )
        paths = [project_path(each, root, event.cwd) for each in list(named or [])[:_MOST_FILES]]
        return [Action(verb, path) for path in paths if path]
    if tool in ("Grep", "Glob"):
        pattern = given.get("pattern")
        if not isinstance(pattern, str) or not pattern.strip():
            return []
        return [Action("search" if tool == "Grep" else "glob", redact(pattern[:300]).text)]
    if tool in ("WebFetch", "WebSearch"):
        subject = given.get("url") or given.get("query") or ""
        return [Action("fetch", redact(str(subject)[:300]).text)]
    if tool.startswith("mcp:"):
        return [Action("mcp", tool)]
    if tool in PLAN_LISTS or tool in (PLAN_MAKES, PLAN_CHANGES):
        return [Action("plan")]
    return [Action("accept")] if tool == "ExitPlanMode" else []


def _shell(event: HostEvent, root: str) -> list[Action]:
    line = event.tool_input.get("command")
    if not isinstance(line, str):
        return []
    line, command = _understood(line[:_REDACTED])
    if command is None:
        return []
    found = [Action("run", command.text, command)]
    if command.purpose in ("read", "search"):
        words = _words(command.text)
        if command.purpose == "search" and words:
            found.append(Action("search", words[0][:300]))
        else:
            paths = [
                project_path(word, root, event.cwd) for word in words if not _RANGE.match(word)
            ]
            found += [
                Action("read", path) for path in paths[-3:] if path and ("." in path or "/" in path)
            ]
    if match := _IN_PLACE.search(line):
        folder = folder_of(line[: match.start()], event.cwd)
        words = [word for word in _words(line) if "." in word and not word.startswith("s/")]
        found += [
            Action("edit", path)
            for word in words[-2:]
            if not _NO_NAME.search(word)
            and (path := project_path(posixpath.join(folder, word), root, event.cwd))
        ]
    for match in _WRITTEN.finditer(line.split("\n", 1)[0]):
        folder = folder_of(line[: match.start()], event.cwd)
        path = project_path(posixpath.join(folder, match[1] or match[2]), root, event.cwd)
        if path and not path.startswith("dev/"):
            found.append(Action("edit", path))
    return found


def folder_of(line: str, cwd: str) -> str:
    """Return the folder a command line changed to; empty if unclear.

    >>> folder_of("cd web && ", "/w/app"), folder_of("cd ../other; ", "/w/app"), folder_of("cd $X", "/w")
    ('/w/app/web', '/w/other', '')
    """  # noqa: E501
    folder = cwd
    for match in _MOVED.finditer(line):
        name = match[1].strip("\"'")
        if _NO_NAME.search(name):
            return ""
        folder = posixpath.normpath(posixpath.join(folder, name))
    return folder


@lru_cache(maxsize=256)
def _understood(line: str) -> tuple[str, Command | None]:
    """A command line without secrets, and what it does; agents run the same ones again and
    again.
    """
    clean = redact(line).text
    return clean, read_command(clean)


def _words(text: str) -> list[str]:
    """Return the arguments of a command, without its program and options."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [word for word in words[1:] if not word.startswith("-") and word not in ("grep",)]
