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
from smara.core.startup.regex import re, regex
from smara.secrets import redact

PLAN_LISTS = frozenset({"TodoWrite", "update_plan", "todo_write", "write_todos", "todowrite"})
"""Tools that write a whole plan."""
PLAN_MAKES, PLAN_CHANGES = "TaskCreate", "TaskUpdate"
"""Tools that make or change one item of a plan."""
_DOCUMENT = regex(
    r"<<-?[ \t]*['\"]?(\w{1,40})['\"]?([^\n]{0,300})\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_QUOTED = r"'[^']{0,2000}'|\"(?:[^\"\\]|\\.){0,2000}\""
_WRITTEN = regex(
    rf"(?:^|[;&|(\s])(?:(?:cat|echo|printf)\b(?:[^|;&\n'\">]|{_QUOTED}|>&\d){{0,200}}?>{{1,2}}\s*"
    r"|tee\s+(?:-\S+\s+)*(?:<<\S+\s+)?)"
    r"(?P<file>[\w./@+][\w./@+-]*|'[^'\n]{1,200}'|\"[^\"\n$]{1,200}\")"
    rf"|(?:^|[;&|(\s])(?P<edit>(?:sed|perl)\s+(?:-\S+\s+)*?(?:-[\dlnpwErsz]{{0,6}}i|--in-place)"
    rf"\S{{0,20}}\s(?:[^|;&\n'\"]|{_QUOTED}){{1,400}})",
    re.MULTILINE,
)
"""What a shell writes by a redirection, or by an editor of streams in its place."""
_SCRIPT = regex(r"\s-\w{0,5}e\s")
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
    written = (project_path(path, root, event.cwd) for path in files_written(line, event.cwd))
    found += [Action("edit", path) for path in written if path and not path.startswith("dev/")]
    return found


def files_written(line: str, cwd: str = "") -> dict[str, str]:
    """Return the files that a line writes, with their text in it.

    >>> files_written("cd web && sed -i s/a/b/ x.ts; cat <<'E' > y.md\\nhi\\nE")
    {'web/x.ts': '', 'web/y.md': 'hi\\n'}
    """
    found: dict[str, str] = {}
    at, folder = 0, cwd
    while at < len(line):
        document = _DOCUMENT.search(line, at)
        head = line[at : document.end(2) if document else len(line)]
        read = 0
        for match in _WRITTEN.finditer(head):
            folder, read = folder_of(head[read : match.start()], folder), match.start()
            # The text behind a line is that of the command with the mark.
            before = line[at + read + 1 : document.start()] if document else ";"
            text = document[3] if document and {*";&|\n"}.isdisjoint(before) else ""
            for name in [match["file"]] if match["file"] else _edited_in_place(match["edit"]):
                found[posixpath.join(folder, name.strip("'\""))] = text
        folder = folder_of(head[read:], folder)
        at = document.end() if document else len(line)
    return found


def _edited_in_place(command: str) -> list[str]:
    """Return the files of `sed -i` or `perl -i`: what follows the scripts."""
    files = [*filter(None, _words(command))][max(1, len(_SCRIPT.findall(command))) :]
    return [
        file
        for file in files[:_MOST_FILES]
        if any(map(str.isalnum, file)) and not _NO_NAME.search(file)
    ]


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
