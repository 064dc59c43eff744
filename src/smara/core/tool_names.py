"""Map every host's tool and argument names to one vocabulary.

Hooks load this module: it imports nothing but builtins until a shell line is split.
"""

from __future__ import annotations

TYPE_CHECKING = False  # read by hooks, for which typing would be the dearest import of all

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_TOOLS: dict[str, tuple[str, ...]] = {
    "Bash": ("bash", "shell", "exec_command", "run_shell_command", "local_shell",
    "local_shell_call", "terminal",
             "run_terminal_cmd", "powershell", "execute_command"),
    "Read": ("read", "view", "read_file", "read_many_files", "open_file", "cat"),
    "Edit": ("edit", "multiedit", "strreplace", "str_replace", "str_replace_editor", "apply_patch",
    "replace",
             "edit_file", "search_replace", "patch", "notebookedit"),
    "Write": ("write", "create", "write_file", "create_file"),
    "Grep": ("grep", "search_file_content", "grep_search", "rg", "codebase_search"),
    "Glob": ("glob", "find_files", "file_search", "list", "ls", "list_directory", "list_dir"),
    "WebFetch": ("webfetch", "web_fetch", "fetch_url", "fetch"),
    "WebSearch": ("websearch", "web_search", "google_web_search", "web_search_call"),
    "Task": ("task", "agent", "spawn_agent", "delegate", "subagent"),
}  # fmt: skip
_NAMES = {alias: name for name, aliases in _TOOLS.items() for alias in aliases}
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "file_path": (
        "file_path",
        "filePath",
        "path",
        "target_file",
        "absolute_path",
        "notebook_path",
        "filename",
        "file",
    ),
    "command": ("command", "cmd", "script"),
    "pattern": ("pattern", "query", "regex"),
    "url": ("url", "uri"),
    "old_string": ("old_string", "oldString", "old_str"),
    "new_string": ("new_string", "newString", "new_str"),
}
_ARGUMENTS_OF = {
    "Bash": ("command",), "Read": ("file_path",), "Edit": ("file_path", "old_string", "new_string"),
    "Write": ("file_path",), "Grep": ("pattern",), "Glob": ("pattern",), "WebFetch": ("url",),
}  # fmt: skip
_PARTS = ("offset", "limit", "view_range", "start_line", "end_line", "range")
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")


def tool_name(name: str) -> str:
    """Return our name of a host's tool.

    The names of MCP tools become ``mcp:<server>:<tool>``.

    ``mcp__browser__click`` (Claude, Codex) and ``mcp_browser_click`` (Gemini) are both
    ``mcp:browser:click``.
    """
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return f"mcp:{server}:{tool}"
    if name.startswith("mcp_"):
        server, _, tool = name.removeprefix("mcp_").partition("_")
        return f"mcp:{server}:{tool}"
    return _NAMES.get(name.lower().replace("-", "_"), name)


def tool_arguments(tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the arguments that matter to our names."""
    renamed = dict(given)
    for ours in _ARGUMENTS_OF.get(tool, ()):
        theirs = (name for name in _ARGUMENTS[ours] if renamed.get(name) not in (None, ""))
        found = next(theirs, None)
        if found and found != ours:
            renamed[ours] = renamed.pop(found)
    if tool == "Bash" and isinstance(renamed.get("command"), list):
        renamed["command"] = shell_line(renamed["command"])
    if tool == "Edit" and not renamed.get("file_path"):
        patched = patched_files(renamed)
        if patched:
            renamed["file_path"], renamed["files"] = patched[0], patched
    return renamed


def is_whole(arguments: Mapping[str, Any]) -> bool:
    """Return True if a call reads a file and not a part."""
    return all(arguments.get(name) in (None, "") for name in _PARTS)


def shell_line(words: list[Any]) -> str:
    """Join a command given as words; unwrap ``bash -lc TEXT``."""
    texts = [str(word) for word in words]
    if (
        len(texts) == 3
        and texts[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh")
        and texts[1] in ("-c", "-lc", "-ic")
    ):
        return texts[2]
    import shlex

    return shlex.join(texts)


def patched_files(arguments: Mapping[str, Any]) -> list[str]:
    """The files that a patch in the apply_patch format names, in order."""
    for value in arguments.values():
        if isinstance(value, str) and "*** Begin Patch" in value:
            lines = value.splitlines()
            return [
                line.removeprefix(mark).strip()
                for line in lines
                for mark in _PATCHED
                if line.startswith(mark)
            ]
    return []
