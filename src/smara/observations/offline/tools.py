"""What kind of thing a tool does, whatever its host calls it.

Known by its name where it is a common one, otherwise by the shape of its arguments: a
path with new content is a write, a path alone a look, a command is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from smara.observations.offline.exchanges import Call

ToolKind = Literal[
    "look", "search", "change", "command", "web", "agent", "ask", "plan", "quiet", "other"
]

_KINDS: dict[ToolKind, str] = {
    "look": "read readfile viewfile view openfile cat readmanyfiles listdir listfiles "
    "listdirectory ls notebookread",
    "search": "grep glob search searchfiles grepsearch codebasesearch filesearch findfiles "
    "searchfilecontent find",
    "change": "edit write multiedit writefile editfile createfile strreplace strreplaceeditor "
    "strreplacebasededittool"
    " replace replaceinfile writetofile applypatch patch insertedit insert notebookedit "
    "searchreplace applydiff"
    " deletefile",
    "command": "bash shell exec execcommand runcommand executecommand runterminalcmd "
    "runinterminal terminal"
    " runshellcommand localshell powershell cmd",
    "web": "websearch webfetch fetch fetchurl browse browser openurl readurl googlesearch "
    "googlewebsearch searchweb",
    "agent": "task agent dispatchagent subagent newtask spawnagent runsubagent",
    "ask": "askuserquestion askfollowupquestion askuser requestuserinput question",
    "plan": "exitplanmode updateplan presentplan",
    "quiet": "todowrite todoread enterplanmode taskoutput bashoutput killshell killbash skill "
    "slashcommand toolsearch"
    " taskcreate taskupdate tasklist taskget think wait sleep writestdin attemptcompletion",
}
_KIND_OF: dict[str, ToolKind] = {
    name: kind for kind, names in _KINDS.items() for name in names.split()
}
_BY_ARGUMENT: tuple[tuple[ToolKind, frozenset[str]], ...] = (
    (
        "change",
        frozenset(
            {"new_string", "new_str", "content", "file_text", "contents", "diff", "edits", "patch"}
        ),
    ),
    ("command", frozenset({"command", "cmd", "script"})),
    ("web", frozenset({"url", "urls"})),
    ("search", frozenset({"pattern", "query", "regex", "q"})),
    ("look", frozenset({"path", "file_path", "filePath", "target_file", "absolute_path"})),
)
PATH_ARGUMENTS = (
    *(
        "file_path",
        "path",
        "filePath",
        "target_file",
        "absolute_path",
        "notebook_path",
        "filename",
        "file",
        "TargetFile",
    ),
    *("relative_workspace_path", "dir_path", "directory"),
)


def kind_of(call: Call) -> ToolKind:
    """What a call does."""
    name = call.name.rsplit("__", 1)[-1].replace("_", "").replace("-", "").lower()
    known = _KIND_OF.get(name)
    if known == "look" and _writes(call):
        return "change"  # one editor tool for viewing and for editing
    if known is not None and not call.name.startswith("mcp__"):
        return known
    if isinstance(call.arguments, Mapping):
        for kind, arguments in _BY_ARGUMENT:
            if not arguments.isdisjoint(call.arguments) and (
                kind != "change" or call.argument(*PATH_ARGUMENTS)
            ):
                return kind
    return known or "other"


def _writes(call: Call) -> bool:
    return isinstance(call.arguments, Mapping) and not _BY_ARGUMENT[0][1].isdisjoint(call.arguments)


def is_viewing(call: Call) -> bool:
    """Whether an editor tool was only used to look."""
    return call.argument("command") == "view"


def path_of(call: Call) -> str:
    """The path that a call names, or nothing."""
    return call.argument(*PATH_ARGUMENTS)
