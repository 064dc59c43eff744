"""Read tool calls as actions: which files, commands, searches, pages.

Agents read a file with Read, cat or sed -n: each becomes the same action.
"""

from __future__ import annotations

import posixpath
from functools import lru_cache
from itertools import pairwise, takewhile

from smara.actions.commands import DOCUMENT, INNER_LINE, head_of, read_command
from smara.actions.models import Action, Command, Verb
from smara.actions.paths import project_path, rooted
from smara.core.events import HostEvent
from smara.core.startup.regex import re, regex
from smara.core.tool_triggers import OPAQUE, split_line, unwrap
from smara.secrets import redact

PLAN_LISTS = frozenset({"TodoWrite", "update_plan", "todo_write", "write_todos", "todowrite"})
"""Tools that write a whole plan."""
PLAN_MAKES, PLAN_CHANGES = "TaskCreate", "TaskUpdate"
"""Tools that make or change one item of a plan."""
# A comment, or a word of a program behind its mark of redirection.
_PIECE = regex(
    r"(?<!\S)#[^\n]*|[ \t]*((?:\d|&)?[<>]{1,3}[|&]?)?[ \t]*"
    rf"(?!#)((?:[^\s'\"\\<>&|;()`$]|{OPAQUE}|\$)+)",
    re.DOTALL,
)
_NAME = regex(r"(?:[\w./@+:,-]|\\.|'[^'\n]+'|\"[^\"\n$`]+\")+")
_QUOTE = regex(r"'([^']*)'|\"([^\"]*)\"|\\([^\w.])")
_OPENING = regex(r"(?:[({!\s]|(?:if|elif|while|until|then|do|else)\s)*")
_IN_PLACE = regex(r"-[\dlnpwaErsz]{0,8}i|--in-place")
_SCRIPT = regex(r"-(?![IM])\w{0,8}[ef](?:$|['\"])|--(?:expression|file)\b")
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
        given = [word for mark, word in _PIECE.findall(command.text) if mark in ("", "<")]
        words = [
            word
            for word in (_QUOTE.sub(r"\1\2\3", word) for word in given[1:])
            if word[:1] != "-" and word != "grep"
        ]
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


def files_written(line: str, cwd: str = "", until: str = "") -> dict[str, str]:
    """Return the files that a line writes, with their text in it.

    Args:
        line: The command line.
        cwd: The folder that it begins in.
        until: The head of the command before which to stop.

    >>> files_written("cd web && sed -i s/a/b/ x.ts; cat <<'E' > y.md\\nhi\\nE")
    {'web/x.ts': '', 'web/y.md': 'hi\\n'}
    """
    found: dict[str, str] = {}
    line = INNER_LINE.sub(r"\1\2", line)
    texts = {
        str(each.start()): each["text"]
        for each in DOCUMENT.finditer(line)
        if each["text"] is not None
    }
    # A document is no part of the commands: its place in the line stands for it.
    bare = DOCUMENT.sub(
        lambda each: each[0] if each["text"] is None else f"<<{each.start()}{each['rest']}", line
    )
    folders = [cwd or "."]
    for programs in takewhile(
        lambda programs: not until or until not in map(head_of, programs), split_line(bare)
    ):
        text = ""
        for program in programs:
            inner = unwrap(_OPENING.sub("", program, count=1))[1]
            before, odd = program[: len(program) - len(inner)], _PIECE.sub("", inner)
            pieces = [(mark, word) for mark, word in _PIECE.findall(inner) if word]
            name, *words = [word for mark, word in pieces if not mark] or [""]
            name = name.rpartition("/")[2]
            folders += folders[-1:] * (before.count("(") - before.count(")") + (name == "pushd"))
            fed = (texts[word] for mark, word in pieces if mark == "<<" and word in texts)
            text = next(fed, text if name == "tee" else "")
            if name in ("cd", "chdir", "pushd", "Set-Location"):
                to = next((word for word in reversed(words) if word[0] != "-"), "~")
                folders[-1] = folder_of(f"cd {to}", folders[-1])
            elif {*"(`"}.isdisjoint(odd):  # else there is an inner command that is not understood
                files = _given(name, words) + [
                    word
                    for mark, word in pieces
                    if mark.lstrip("1&") in (">", ">>", ">|")
                    and name in ("cat", "echo", "printf", "tee")
                ]
                paths = (
                    _below(folders[-1], _QUOTE.sub(r"\1\2\3", file))
                    for file in filter(_NAME.fullmatch, files)
                )
                found.update((path, text) for path in paths if any(map(str.isalnum, path)))
            del folders[max(1, len(folders) - odd.count(")") - (name == "popd")) :]
    return found


def _given(name: str, words: list[str]) -> list[str]:
    """Return the files that are given to `tee`; to `sed -i` or `perl -i` behind the scripts."""
    if name != "tee" and not (name in ("sed", "perl") and any(map(_IN_PLACE.match, words))):
        return []
    files = [
        word
        for before, word in pairwise(["", *words])
        if word[0] != "-"
        and not (before == "-i" and word.strip("'\"") in ("", ".bak", ".old", ".orig", ".tmp"))
        and not (_SCRIPT.match(before) and {*"='\""}.isdisjoint(before))
    ]
    has_scripts = name == "tee" or any(map(_SCRIPT.match, words))
    return (files if has_scripts else files[1:])[:_MOST_FILES]


def _below(folder: str, name: str) -> str:
    """Return a path in a folder; empty if it is unclear where that is."""
    path = name.replace("\\", "/")
    parts = [path] if rooted(path).startswith("/") else [folder.replace("\\", "/"), path]
    return posixpath.normpath(posixpath.join(*parts)) if all(parts) else ""


def folder_of(line: str, cwd: str) -> str:
    """Return the folder a command line changed to; empty if unclear.

    >>> folder_of("cd web && ", "/w/app"), folder_of("cd ../other; ", "/w/app"), folder_of("cd $X", "/w")
    ('/w/app/web', '/w/other', '')
    """  # noqa: E501
    folder = cwd
    for match in _MOVED.finditer(line):
        name = match[1].strip("\"'")
        folder = "" if _NO_NAME.search(name) else _below(folder, name)
    return folder


@lru_cache(maxsize=256)
def _understood(line: str) -> tuple[str, Command | None]:
    """A command line without secrets, and what it does; agents run the same ones again and
    again.
    """
    clean = redact(line).text
    return clean, read_command(clean)
