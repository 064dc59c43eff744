"""Map every host's tool and argument names to one vocabulary.

Hooks load this module: it imports nothing but builtins until a shell line is split.
"""

from __future__ import annotations

TYPE_CHECKING = False  # read by hooks, for which typing would be the dearest import of all

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    PatchVerb = Literal["Changed", "Created", "Deleted"]

_TOOLS: dict[str, tuple[str, ...]] = {
    "Bash": ("bash", "shell", "exec_command", "run_shell_command", "local_shell",
    "local_shell_call", "terminal", "run_terminal_cmd", "run_in_terminal", "run_command",
    "powershell", "execute_command"),
    "Read": ("read", "view", "read_file", "read_many_files", "open_file", "view_file", "cat",
    "notebook_read"),
    "Edit": ("edit", "multiedit", "strreplace", "str_replace_editor", "apply_patch", "replace",
    "str_replace_based_edit_tool", "edit_file", "search_replace", "replace_in_file", "patch",
    "apply_diff", "insert_edit_into_file", "delete_file", "notebook_edit"),
    "Write": ("write", "create", "write_file", "write_to_file", "create_file"),
    "Grep": ("grep", "search_file_content", "grep_search", "rg", "codebase_search", "search_files"),
    "Glob": ("glob", "find_files", "file_search", "list", "ls", "list_directory", "list_dir",
    "list_files"),
    "WebFetch": ("web_fetch", "fetch_url", "fetch", "open_url", "read_url"),
    "WebSearch": ("web_search", "google_web_search", "web_search_call", "google_search",
    "search_web"),
    "Task": ("task", "agent", "spawn_agent", "dispatch_agent", "run_subagent", "new_task",
    "delegate", "subagent"),
}  # fmt: skip
_NAMES = {alias.replace("_", ""): name for name, aliases in _TOOLS.items() for alias in aliases}
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "file_path": ("file_path", "filePath", "path", "target_file", "absolute_path",
    "notebook_path", "filename", "file", "TargetFile", "relative_workspace_path", "dir_path",
    "directory"),
    "command": ("command", "cmd", "script"),
    "pattern": ("pattern", "query", "regex", "q", "glob_pattern"),
    "url": ("url", "uri"),
    "old_string": ("old_string", "oldString", "old_str", "old_text", "search", "SEARCH"),
    "new_string": ("new_string", "newString", "new_str", "new_text", "replace", "new_source",
    "insert_text", "code_edit", "REPLACE"),
    "content": ("content", "file_text", "contents", "text", "file_content", "CodeContent"),
}  # fmt: skip
"""Our names of arguments, and those of the hosts."""
_ARGUMENTS_OF = {
    "Bash": ("command",), "Read": ("file_path",), "Edit": ("file_path", "old_string", "new_string"),
    "Write": ("file_path",), "Grep": ("pattern",), "Glob": ("pattern",), "WebFetch": ("url",),
}  # fmt: skip
_PARTS = ("offset", "limit", "view_range", "start_line", "end_line", "range")
_PATCHED: dict[str, PatchVerb] = {
    "*** Update File: ": "Changed",
    "*** Add File: ": "Created",
    "*** Delete File: ": "Deleted",
    "+++ b/": "Changed",
    "+++ ": "Changed",
}


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
    return _NAMES.get(name.lower().replace("-", "").replace("_", ""), name)


def tool_arguments(tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the arguments that matter to our names."""
    renamed = dict(given)
    for ours in _ARGUMENTS_OF.get(tool, ()):
        theirs = (name for name in ARGUMENTS[ours] if renamed.get(name) not in (None, ""))
        found = next(theirs, None)
        if found and found != ours:
            renamed[ours] = renamed.pop(found)
    if tool == "Bash" and isinstance(renamed.get("command"), list):
        renamed["command"] = shell_line(renamed["command"])
    if tool == "Edit" and not renamed.get("file_path") and (patched := patched_files(renamed)):
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
    patches = (
        value
        for value in arguments.values()
        if isinstance(value, str) and "*** Begin Patch" in value
    )
    headings = (
        patched_file(line) for line in next(patches, "").splitlines() if line.startswith("*")
    )
    return [heading[1] for heading in headings if heading]


def patched_file(line: str) -> tuple[PatchVerb, str] | None:
    """Return the verb and the file of a patch's heading.

    >>> patched_file("*** Add File: a.py"), patched_file("+++ b/a.py"), patched_file("+x")
    (('Created', 'a.py'), ('Changed', 'a.py'), None)
    """
    return next(
        (
            (verb, line.removeprefix(mark).partition("\t")[0].strip())
            for mark, verb in _PATCHED.items()
            if line.startswith(mark)
        ),
        None,
    )
