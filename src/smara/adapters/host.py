"""Describe an agent host by one frozen object.

A `Host` has every fact about one agent: the hooks it runs, the files that setup writes, where
its transcripts lie and who reads them, its instruction files. What a host does not have is
``None`` or empty. Each file of :mod:`smara.adapters.host_specs` makes one `Host`, and every
table elsewhere is derived from them. See docs/howto/add-a-host.md. Hooks that open the store
import this module, and a named tuple is made in an eighth of a dataclass's time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from smara.adapters.lines import JsonLine, decode, read_lines
from smara.core.events import Kind
from smara.core.git import find_repository
from smara.core.startup.record import dataclass, field
from smara.environment import home_of
from smara.errors import SmaraError

HEAD_LINES = 30
_NEVER = {".git", ".venv", "node_modules", "__pycache__"}


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A transcript of an agent: a file, or a database's session.

    Attributes:
        cwd: The folder of the session; empty if nothing names it.
        at_ms: The time of the last change.
        only: The session, of a file that has many.
        is_unreadable: True if its head could not be read, so that nothing says where it belongs.
    """

    path: str
    format: str
    cwd: str = ""
    at_ms: int = 0
    session_id: str = ""
    is_subagent: bool = False
    only: str | None = None
    is_unreadable: bool = False


class Here:
    """A folder, and the test that others are of its repository."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        repository = find_repository(folder)
        self._common_dir = repository.common_dir if repository else None
        self.root = repository.root if repository else self.folder
        self._answers: dict[str, bool] = {}

    def has(self, folder: str) -> bool:
        """Return True if a folder is of this repository.

        Without a repository: if it is below this folder, and in none either.
        """
        if folder not in self._answers:
            repository = find_repository(folder) if folder else None
            is_here = (repository.common_dir if repository else None) == self._common_dir
            if self._common_dir is None:
                inside = os.path.join(os.path.realpath(folder), "")
                is_here &= bool(folder) and inside.startswith(os.path.join(self.folder, ""))
            self._answers[folder] = is_here
        return self._answers[folder]

    def candidates(self) -> list[str]:
        """Return the folders of this repository that an agent may start in."""
        inside = [self.folder, *(str(each) for each in Path(self.folder).parents)]
        return list(
            dict.fromkeys([self.root, *(each for each in inside if each.startswith(self.root))])
        )


def walk(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder.

    Folders that cannot be listed are skipped; links are not followed.
    """
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _NEVER)
        for name in sorted(names):
            yield Path(root, name)


def glob_sorted(folder: Path, pattern: str) -> list[Path]:
    """Return what matches below a folder; nothing if it cannot be listed."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def head(path: Path, lines: int = HEAD_LINES) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the first lines of a file.

    An unreadable file yields nothing.
    """
    try:
        for entry in map(decode, islice(read_lines(path), lines)):
            if isinstance(entry, JsonLine):
                yield entry.value
    except SmaraError:
        return  # it is reported when the file itself is read


def is_readable(path: Path) -> bool:
    """Return True if a compressed file's first line can be read."""
    if not path.name.endswith(".zst"):
        return True
    try:
        first = next(read_lines(path), None)
    except SmaraError:
        return False
    return first is not None and first.problem is None


def written_at(path: str | os.PathLike[str]) -> int:
    """Return the time of a file's last change in milliseconds, or 0."""
    try:
        return int(os.stat(path).st_mtime * 1000)
    except OSError:
        return 0


Reach = Literal["project", "global"]
Block = Literal["toml", "markdown"]
# The timeouts of hooks that setup registers.
START_SECONDS, STEP_SECONDS, DRAIN_SECONDS, END_SECONDS = 10, 5, 60, 1
# Where the event's name and our text stand in `Hooks.output`.
EVENT, TEXT = "$EVENT", "$TEXT"


class Fields(NamedTuple):
    """The names of facts in a payload; the first one present counts.

    Attributes:
        parent_id: Of a sub-agent with a session of its own: the session that started it.
        once: Ids that tell a repeated event from a second event with the same words.
    """

    session_id: tuple[str, ...] = (
        "session_id", "sessionId", "conversation_id", "sessionID", "thread-id",
    )  # fmt: skip
    transcript_path: tuple[str, ...] = (
        "agent_transcript_path", "transcript_path", "transcriptPath",
    )  # fmt: skip
    cwd: tuple[str, ...] = ("cwd", "directory")
    source: tuple[str, ...] = (
        "source", "trigger", "reason", "load_reason", "event", "status", "stopReason",
        "stop_reason",
    )  # fmt: skip
    prompt: tuple[str, ...] = ("prompt", "initialPrompt", "initial_prompt")
    tool: tuple[str, ...] = ("tool_name", "toolName", "tool")
    tool_input: tuple[str, ...] = ("tool_input", "toolArgs", "tool_args", "args")
    tool_output: tuple[str, ...] = (
        "tool_response", "toolResult", "tool_result", "result_json", "output", "tool_output",
    )  # fmt: skip
    tool_use_id: tuple[str, ...] = ("tool_use_id", "toolUseId", "toolCallId", "callID")
    duration_ms: tuple[str, ...] = ("duration_ms", "duration")
    parent_id: tuple[str, ...] = ("parentAgentId", "parent_agent_id")
    error: tuple[str, ...] = ("error", "error_message", "error_details")
    subagent_id: tuple[str, ...] = ("agent_id", "agentId", "subagent_id")
    text: tuple[str, ...] = (
        "last_assistant_message", "prompt_response", "compact_summary", "text",
        "lastAssistantMessage", "response",
    )  # fmt: skip
    model: tuple[str, ...] = ("model",)
    file_path: tuple[str, ...] = ("file_path", "filePath")
    once: tuple[str, ...] = ("prompt_id", "generation_id", "messageID", "turn_id")


class RuleFile(NamedTuple):
    """A file in which a host reads our text without a hook.

    Attributes:
        head: Its first lines, which show that it is ours.
    """

    path: str
    head: str


class Hooks(NamedTuple):
    """The events that a host sends, and the answers it takes.

    Attributes:
        answerable: Events that may be answered; every other one is only stored.
        transient: Events that are not stored, because a later one repeats them with more in it.
        drain_events: Events at which the spool is drained while the host waits, as it has no
            background.
        has_background: True if setup registers a drain that the host runs in its background.
        most_characters: The length at which a text is cut; a host hides what is longer in a file.
        sources: The host's own words for why a session starts, and ours.
        helper_kinds: Events of sub-agents that mean something else, or nothing: no person wrote
            their prompts.
        event_tools: The tool of events that do not name it; their arguments stand in the payload
            itself.
        mcp_events: Events that name a tool of an MCP server without the server.
        mark: A field that this host alone sends, in the hooks of other hosts as well.
        is_payload: Recognise this host's payload of an event if the command names no host.
        runs_hooks_of: Hosts whose registered hooks this host runs, too.
        runner_variable: An environment variable that is set in every hook that this host runs.
        has_call_ids: False if hooks do not name a tool call as the transcript names it.
        exit_codes: If the exit code of a command stands in the transcript alone: the function, as
            ``module:function``, that finds it there; see `adapters/hosts/exit_codes.py`.
    """

    events: Mapping[str, Kind]
    answerable: tuple[str, ...] = ()
    transient: tuple[str, ...] = ()
    drain_events: tuple[str, ...] = ()
    has_background: bool = False
    output: Mapping[str, Any] = {
        "hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": TEXT}
    }
    most_characters: int = 9_500
    is_limit_in_bytes: bool = False
    fields: Fields = Fields()
    sources: Mapping[str, str] = MappingProxyType({})
    helper_kinds: Mapping[Kind, Kind | None] = MappingProxyType({})
    event_tools: Mapping[str, str] = MappingProxyType({})
    event_arguments: tuple[str, ...] = ()
    mcp_events: tuple[str, ...] = ()
    mark: str = ""
    is_payload: Callable[[str, Mapping[str, Any]], bool] | None = None
    runs_hooks_of: tuple[str, ...] = ()
    runner_variable: str = ""
    has_call_ids: bool = True
    exit_codes: str = ""
    rule_file: RuleFile | None = None


class HomeFolder(NamedTuple):
    """The folder of a user in which a host keeps its settings."""

    variable: str
    otherwise: str
    below: str = ""

    @property
    def path(self) -> str:
        """The folder, as the environment names it or below the user's home."""
        return os.path.join(home_of(self.variable, self.otherwise), self.below).rstrip(os.sep)


@dataclass(frozen=True, slots=True)
class SetupTarget:
    """One file of a host, and our part of it.

    Attributes:
        additions: Of a JSON file: the entries that are added to it.
        body: Of a TOML or Markdown file: the block. Of a file of our own: its content.
        changes_itself: True if hooks rewrite a file of our own, so that any content of it counts as
            ours.
        is_former: True for a file that an older version wrote to: our part of it goes.
    """

    path: str
    form: Literal["json", "own"] | Block
    additions: dict[str, Any] = field(default_factory=dict)
    body: str = ""
    changes_itself: bool = False
    is_former: bool = False

    def is_ours(self, path: tuple[str, ...], value: Any) -> bool:
        """Return True if ``smara setup`` writes this entry of a JSON file."""
        if (
            len(path) == 2
            and path[0] in ("mcpServers", "mcp", "context_servers")
            and path[1] == "smara"
        ):
            return True
        return len(path) == 3 and path[0] == "hooks" and path[2] == "[]" and is_own_hook(value)


class Setup(NamedTuple):
    """The files that make a host call us, and its signs.

    Attributes:
        targets: Return the files for a reach, the root of a repository and the program to call.
        advice: A sentence for the user after setup.
        alternative: Return the lines about another way to set it up.
        has_plugin: Return True if our plug-in is enabled, given the host's home and a repository.
        untrusted: Return the first of these files whose hooks the host skips until its user agrees.
        deaf_version: The last version that ignored the output of hooks.
        is_global: True if the host has no settings of a repository.
        by_hand: What a person does where no file can be written; empty otherwise.
    """

    targets: Callable[[Reach, str, str], list[SetupTarget]]
    programs: tuple[str, ...] = ()
    home: HomeFolder | None = None
    advice: Mapping[Reach, str] = MappingProxyType({})
    alternative: Callable[[], tuple[str, ...]] = tuple
    has_plugin: Callable[[str, str], bool] = lambda home, root: False
    untrusted: Callable[[str, list[str]], str] = lambda home, paths: ""
    is_timeout_in_ms: bool = False
    deaf_version: tuple[int, ...] = ()
    is_global: bool = False
    by_hand: str = ""


class Transcripts(NamedTuple):
    """The record that a host keeps of its sessions.

    Attributes:
        format: The name in ``smara import --from NAME`` and in a thread's metadata.
        reader: ``module:function`` that yields records; it is imported with the first file.
        find: Find every transcript on this machine.
        is_record: Return True if a line of JSON is a record of this host.
        is_loose: True if `is_record` would accept records of others: it is asked after all of them.
        documents: Regular expressions for the first characters of files that are one JSON document.
        is_file: Return True if a file is recognised without reading lines of it.
        has_sessions: Return True if a file of this format is surely a transcript, as a database may
            not be.
        locate: Return the transcript of a session id, or ""; ``None`` if hooks name the path.
        has_subagent_files: False if a sub-agent has no transcript of its own.
        has_many_sessions: True if one file has many sessions, as a database has.
        injection: Return the text that a hook put into a record, or "".
    """

    format: str
    reader: str
    find: Callable[[Here], Iterator[TranscriptFile]]
    is_record: Callable[[Mapping[str, Any]], bool]
    is_loose: bool = False
    documents: tuple[str, ...] = ()
    is_file: Callable[[str | os.PathLike[str]], bool] = lambda path: False
    has_sessions: Callable[[str | os.PathLike[str]], bool] = lambda path: True
    locate: Callable[[str], str] | None = None
    has_subagent_files: bool = True
    has_many_sessions: bool = False
    injection: Callable[[Mapping[str, Any]], str] | None = None


class Instructions(NamedTuple):
    """The files in which people tell a host what to do.

    Attributes:
        patterns: Paths below the folder that a file is about; ``**`` stands for any number of
            folders.
        at_start: Files of a repository that the host itself reads when a session starts.
        at_home: The same, in the host's folder of the user.
        folder: A folder of a repository that has nothing but files of this host.
    """

    patterns: tuple[str, ...] = ()
    at_start: tuple[str, ...] = ()
    at_home: tuple[str, ...] = ()
    folder: str = ""


NoteForm = Literal["plain", "head", "handbook", "additions"]
"""Notes as they stand; with a head that may name a type, around an index of links; a handbook with
blocks about one folder each; or a file of instructions of which the host wrote one section.
"""
MOST_NOTES = 2_000


class NotesFolder(NamedTuple):
    """A folder of notes that a host keeps by itself.

    Attributes:
        is_whole: Whether a note of it that is not there any more is gone.
    """

    place: str
    files: tuple[str, ...]
    form: NoteForm = "plain"
    is_whole: bool = True

    @classmethod
    def of(cls, folder: Path, form: NoteForm = "plain", pattern: str = "**/*.md") -> NotesFolder:
        """Return a folder with the files that match a pattern.

        A link is none of them, unless the pattern is its name.
        """
        paths = filter(Path.is_file, glob_sorted(folder, pattern))
        files = sorted(
            str(each) for each in paths if not each.is_symlink() or each.name == pattern
        )[:MOST_NOTES]
        return cls(Path(os.path.realpath(folder)).as_posix(), tuple(files), form)


class Host(NamedTuple):
    """An agent host: every fact that any door needs.

    Attributes:
        name: Its name in commands, events and tables: ``smara setup NAME``.
        title: Its name in sentences.
        notes: Yield the folders of notes that it keeps about a repository by itself.
    """

    name: str
    title: str = ""
    hooks: Hooks | None = None
    setup: Setup | None = None
    transcripts: Transcripts | None = None
    instructions: Instructions = Instructions()
    notes: Callable[[Here], Iterator[NotesFolder]] | None = None


def hook_line(program: str, host: str, event: str) -> str:
    """Return the shell command of a hook, with a quoted path.

    Hosts on Windows run it in bash, too, which takes a bare backslash for an escape.
    """
    word = f'"{program}"' if " " in program or "\\" in program else program
    return f"{word} hook {host} {event}"


def is_own_hook(entry: Any) -> bool:
    """Return True if a registration of a hook calls smara alone."""
    if not isinstance(entry, dict):
        return False
    inner = entry.get("hooks")
    if isinstance(inner, list) and inner:
        return all(map(is_own_hook, inner))
    words = [entry.get(name) for name in ("command", "bash")]
    arguments = entry.get("args") if isinstance(entry.get("args"), list) else []
    line = " ".join(str(word) for word in [words[0] or words[1] or "", *(arguments or [])])
    return "smara" in line.split(" hook ")[0] and " hook " in line


def has_mcp() -> bool:
    """Return True if ``smara mcp`` would start.

    An entry for a server that cannot start is worse than no entry. The server needs the second
    major version of ``mcp``, which brings ``mcp_types``; some frameworks hold it at the first.
    """
    return find_spec("mcp_types") is not None


def mcp_entry(program: str) -> dict[str, Any]:
    """Return the ``mcpServers`` entry that most hosts read; empty without the extra."""
    return {"mcpServers": {"smara": {"command": program, "args": ["mcp"]}}} if has_mcp() else {}
