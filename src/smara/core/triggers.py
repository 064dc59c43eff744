"""What a tool call is about, in coarse words: enough to know that nothing is known about it.

A hook asks these before it opens the store. They are meant to be too broad: a false alarm
costs a look into the store, a false silence would cost a warning.
"""

from __future__ import annotations

import re

from smara.core.tool_names import tool_arguments, tool_name

TYPE_CHECKING = False  # read by hooks; see tool_names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_JOINTS = re.compile(r"&&|\|\||[;|\n&(){}]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")
_BEFORE_A_PROGRAM = ("sudo", "env", "time", "nice", "nohup", "timeout", "xargs", "exec", "command", "then", "do", "!")


def triggers_of(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """The triggers of a call: its tool, the last names of its files, the programs of its command.

    >>> triggers_of("exec_command", {"cmd": "cd web && CI=1 npm test | tail"})
    ['tool:Bash', 'program:cd', 'program:npm', 'program:tail']
    >>> triggers_of("edit_file", {"path": "src/auth/session.py"})
    ['tool:Edit', 'file:session.py']
    """
    name = tool_name(tool)
    given = tool_arguments(name, arguments)
    found = [f"tool:{name}"]
    files = given.get("files") or [given.get("file_path")]
    found += [file_trigger(each) for each in files if isinstance(each, str) and each]
    if name == "Bash" and isinstance(given.get("command"), str):
        found += program_triggers(given["command"])
    return list(dict.fromkeys(found))


def file_trigger(path: str) -> str:
    """The trigger of a file: its last name, however its path is written."""
    return f"file:{path.replace(chr(92), '/').rstrip('/').rpartition('/')[2]}"


def program_triggers(command: str) -> list[str]:
    """The triggers of a command line: every program that it names."""
    found = []
    for part in _JOINTS.split(command[:4000]):
        words = [word for word in part.split() if not _ASSIGNMENT.fullmatch(word)]
        while words and (words[0] in _BEFORE_A_PROGRAM or words[0].startswith("-") or words[0].isdigit()):
            words.pop(0)
        if words:
            found.append("program:" + words[0].strip("\"'`$").rpartition("/")[2])
    return list(dict.fromkeys(found))
