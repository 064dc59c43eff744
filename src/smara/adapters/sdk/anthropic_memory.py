"""Serve the files of Anthropic's memory tool from memory.

What a model writes into a file is stored as text, and each statement in it as a memory: typed, in
the agent's words, for a person to review. The file shows what came of them: a statement that was
rejected is gone, one that a person changed reads as the person wrote it. What people taught or
confirmed stands in ``/memories/from_people``, which cannot be written. Texts and errors are those
of the reference implementation, since models are trained on them.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import Any

from smara.adapters.instructions.parse import parse_instructions
from smara.core import log
from smara.core.startup.record import dataclass
from smara.errors import ConflictError, MissingExtraError, SmaraError
from smara.frameworks.items import FrameworkItems
from smara.frameworks.models import Item
from smara.knowledge.guess import type_of
from smara.knowledge.models import TypedMemory, origins
from smara.memory import Memory

try:
    from anthropic.lib.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError as error:
    raise MissingExtraError(
        "The memory tool needs anthropic. Install it with `pip install 'smara[anthropic]'`.",
        package="anthropic",
    ) from error

Path = tuple[str, ...]
"""A path below ``/memories``, by its parts."""
FRAMEWORK = "anthropic-memory"
PEOPLE = "from_people"
_ROOT = "/memories"
_MOST_LINES = 999_999
_WIDTH = 6
_LONGEST_READ = 100_000
"""A longer file is kept as it is, and no statements are read from it."""
_ALIKE = 0.5
"""So much of a statement must be there still for a change to be an edit of it."""
_MOST_OF_PEOPLE = 500
_ATTEMPTS = 5
_SIZES = ("B", "K", "M", "G")
_GONE = frozenset({"rejected", "forgotten", "superseded"})
_UNREACHABLE = (
    "Memory cannot be reached now, and nothing was changed. Go on without it, and tell the user."
)


@dataclass(frozen=True, slots=True)
class FileStatement:
    """A statement of a file, with its place and memory."""

    memory_id: str
    content: str
    """The memory's content when the file was written."""
    text: str
    """What the file says."""
    first: int
    last: int
    is_own: bool
    """False if the memory was there before."""

    @classmethod
    def all_of(cls, value: Mapping[str, Any]) -> list[FileStatement]:
        return [cls(**each) for each in value["statements"]]

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class MemoryFiles:
    """The tree of files below ``/memories``; safe for threads and processes."""

    def __init__(
        self, memory: Memory, session_id: str | None = None, thread_id: str | None = None
    ) -> None:
        """Open the files of a project.

        Args:
            memory: The memory whose project they belong to.
            session_id: The run of the agent; a new one by default.
            thread_id: The conversation, if its messages are stored: what came into it from
                outside taints what is written.
        """
        self._memory = memory
        self._session_id = session_id or f"{FRAMEWORK}:{memory.internals.project.new_id()}"
        self._thread_id = thread_id

    def files(self) -> dict[str, str]:
        """Return the text of every file by its path."""
        return {_shown(path): text for path, text in sorted(self._tree().items())}

    # commands

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Return a folder's files, or a file with line numbers."""
        place = _place(path)
        tree = self._tree(marks=True)
        if place not in tree:
            if place and not any(each[: len(place)] == place for each in tree):
                raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
            return _listing(path, place, tree)
        lines = tree[place].split("\n")
        if len(lines) > _MOST_LINES:
            raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first = 0
        if view_range and len(view_range) == 2:
            first = max(1, view_range[0]) - 1
            lines = lines[first : len(lines) if view_range[1] == -1 else view_range[1]]
        return f"Here's the content of {path} with line numbers:\n" + _numbered(lines, first + 1)

    def create(self, path: str, text: str) -> str:
        """Create a file."""
        place = self._writable(path)
        tree = self._tree()
        if not place or place in tree or any(each[: len(place)] == place for each in tree):
            raise ToolError(f"File {path} already exists")
        for length in range(1, len(place)):
            if place[:length] in tree:
                raise ToolError(f"The path {_shown(place[:length])} is not a directory.")
        if self._write(place, text, (), revision=0) is None:
            raise ToolError(f"File {path} already exists")
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replace a text that stands in a file once."""

        def replaced(content: str) -> str:
            count = content.count(old)
            if count == 0:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in"
                    f" {path}."
                )
            if count > 1:
                lines = ", ".join(map(str, _lines_with(content, old)))
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in"
                    f" lines: {lines}. Please ensure it is unique"
                )
            return content.replace(old, new)

        before, after = self._edit(path, replaced)
        changed = before[: before.find(old)].count("\n")
        first = max(0, changed - 2)
        snippet = _numbered(after.split("\n")[first : changed + 3], first + 1)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line"
            f" numbers):\n{snippet}"
        )

    def insert(self, path: str, line: int, text: str) -> str:
        """Insert a text below a line; 0 for the beginning."""

        def inserted(content: str) -> str:
            lines = content.split("\n")
            lines = lines[:-1] if lines[-1] == "" else lines
            if not 0 <= line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {line}. It should be within the range"
                    f" [0, {len(lines)}]."
                )
            lines.insert(line, text.rstrip("\n"))
            joined = "\n".join(lines)
            return joined if joined.endswith("\n") else f"{joined}\n"

        self._edit(path, inserted)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file or a folder; memories of it are forgotten."""
        place = _place(path)
        if not place:
            raise ToolError("Cannot delete the /memories directory itself")
        self._writable(path)
        if not self._remove(place):
            raise ToolError(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Move a file or a folder; its memories stay."""
        old, new = _place(old_path), _place(new_path)
        if not old:
            raise ToolError("Cannot rename the /memories directory itself")
        self._writable(old_path)
        self._writable(new_path)
        if not new or any(each[: len(new)] == new for each in self._tree()):
            raise ToolError(f"The destination {new_path} already exists")
        items = self._items()
        with items.write() as batch:
            moved = [each for each in batch.iterate(()) if _path_of(each)[: len(old)] == old]
            for item in moved:
                place = (*new, *_path_of(item)[len(old) :])
                batch.delete(item.namespace, item.name)
                batch.put(place[:-1], place[-1], items.prepare(item.value, fields=item.fields))
        if not moved:
            raise ToolError(f"The path {old_path} does not exist")
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Delete all files; what people taught stays."""
        self._remove(())
        return "All memory cleared"

    # the tree

    def _items(self) -> FrameworkItems:
        return self._memory.frameworks.items(FRAMEWORK)

    def _tree(self, marks: bool = False) -> dict[Path, str]:
        """Return every file's text by its path; with marks, as a model reads it."""
        found = {_path_of(each): self._text(each.value, marks) for each in self._items().list()}
        return found | self._of_people()

    def _of_people(self) -> dict[Path, str]:
        """Return the files of what people taught or confirmed, by type."""
        by_type: dict[str, list[str]] = {}
        for memory in self._memory.memories.list(tier="confirmed", limit=_MOST_OF_PEOPLE):
            if not memory.is_stale:
                line = " ".join(memory.content.split())
                by_type.setdefault(memory.type, []).append(f"- {line} [Memory #{memory.short_id}]")
        return {(PEOPLE, f"{kind}.md"): "\n".join(lines) for kind, lines in by_type.items()}

    def _writable(self, path: str) -> Path:
        place = _place(path)
        if place[:1] == (PEOPLE,):
            raise ToolError(
                f"{path} belongs to people and cannot be changed here. Write to another file; a"
                " person will review it."
            )
        return place

    def _text(self, value: Mapping[str, Any], marks: bool = False) -> str:
        """Return a file's text with what became of its statements."""
        lines = str(value["text"]).split("\n")
        for line in sorted(FileStatement.all_of(value), key=lambda each: each.first, reverse=True):
            memory = self._memory.memories.find(line.memory_id)
            if memory is None or memory.deprecated_because in _GONE:
                del lines[line.first - 1 : line.last]
                continue
            if memory.content != line.content:
                start = lines[line.first - 1]
                prefix = start[: len(start) - len(start.lstrip(" -*+>\t"))]
                lines[line.first - 1 : line.last] = [prefix + " ".join(memory.content.split())]
            if marks and memory.tier == "quarantined":
                lines[line.first - 1] += f" [not confirmed; from {origins(memory.taint)}]"
        return "\n".join(lines)

    def _edit(self, path: str, change: Callable[[str], str]) -> tuple[str, str]:
        """Change a file; return its text before and after."""
        place = self._writable(path)
        for _ in range(_ATTEMPTS):
            item = self._items().find(place[:-1], place[-1]) if place else None
            if item is None:
                if not place or any(each[: len(place)] == place for each in self._tree()):
                    raise ToolError(f"The path {path} is not a file.")
                raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
            before = self._text(item.value)
            after = change(before)
            lines = FileStatement.all_of(item.value)
            if self._write(place, after, lines, revision=item.revision) is not None:
                return before, after
        raise ToolError(f"The file {path} is being changed by others. Try again.")

    def _write(
        self, place: Path, text: str, before: Sequence[FileStatement], revision: int
    ) -> Item | None:
        """Write a file, then its memories; ``None`` if another writer was first."""
        items = self._items()
        # The text goes first: whatever becomes of the memories, it is stored.
        value = {"text": text, "statements": []}
        try:
            item = items.put(place[:-1], place[-1], value, fields=["text"], revision=revision)
        except ConflictError:
            return None
        clean = str(item.value["text"])
        lines = self._remember(clean, before, _shown(place))
        if not lines:
            return item
        full = {"text": clean, "statements": [each.as_json() for each in lines]}
        try:
            # Its statements are found as memories, and no more when a person has rejected them.
            return items.put(place[:-1], place[-1], full, fields=[], revision=item.revision)
        except ConflictError:  # the next writer reads the statements again
            return item

    def _remove(self, place: Path) -> bool:
        items = self._items()
        with items.write() as batch:
            found = [each for each in batch.iterate(()) if _path_of(each)[: len(place)] == place]
            for item in found:
                batch.delete(item.namespace, item.name)
        for item in found:
            self._forget(FileStatement.all_of(item.value), _shown(_path_of(item)))
        return bool(found)

    # memories

    def _remember(
        self, text: str, before: Sequence[FileStatement], path: str
    ) -> list[FileStatement]:
        """Bring memories in line with a file; return its statements that have one."""
        left = list(before)
        found: list[FileStatement] = []
        for statement in _statements(text):
            same = next((each for each in left if each.text == statement.text), None)
            alike = same or max(
                (each for each in left if _alike(each.text, statement.text) >= _ALIKE),
                key=lambda each: _alike(each.text, statement.text),
                default=None,
            )
            if alike is not None:
                left.remove(alike)
            memory = self._memory.memories.find(alike.memory_id) if alike is not None else None
            is_own = alike.is_own if alike is not None else True
            if memory is not None and memory.deprecated_because in _GONE:
                memory = None
            if memory is not None and same is None:
                memory = self._update(memory, statement.text) if is_own else None
            if memory is None:
                memory, is_own = self._add(statement)
            if memory is not None:
                found.append(
                    FileStatement(
                        memory.id,
                        memory.content,
                        statement.text,
                        first=statement.first_line,
                        last=statement.last_line,
                        is_own=is_own,
                    )
                )
        self._forget(left, path)
        return found

    def _add(self, statement: Any) -> tuple[TypedMemory | None, bool]:
        """Add a memory as an agent does; one that is refused stays text alone."""
        guess = type_of(
            statement.text,
            statement.headings,
            statement.marks,
            is_procedure=bool(statement.steps),
        )
        try:
            added = self._memory.memories.add(
                statement.text,
                type=guess.type,
                by="agent",
                session_id=self._session_id,
                thread_id=self._thread_id,
                source="agent_explicit",
            )
        except SmaraError as error:
            log.warning("memory_file.not_remembered", error=error.code)
            return None, False
        return added.memory, added.outcome == "added"

    def _update(self, memory: TypedMemory, text: str) -> TypedMemory | None:
        """Edit a memory as an agent does; return ``None`` if that is refused."""
        try:
            return self._memory.memories.update(
                memory.id,
                by="agent",
                session_id=self._session_id,
                thread_id=self._thread_id,
                content=text,
            )
        except SmaraError:  # a person stands behind it, or it says the same as another
            return None

    def _forget(self, lines: Sequence[FileStatement], path: str) -> None:
        """Forget memories whose statement was taken out of a file."""
        shared = {
            line.memory_id
            for each in self._items().list()
            for line in FileStatement.all_of(each.value)
        }
        for line in lines:
            if line.is_own and line.memory_id not in shared:
                try:
                    self._memory.memories.forget(
                        line.memory_id,
                        f"taken out of {path}",
                        by="agent",
                        session_id=self._session_id,
                    )
                except SmaraError as error:  # a person stands behind it, or it is gone
                    log.event("memory_file.not_forgotten", error=error.code)


def _statements(text: str) -> Iterator[Any]:
    """Yield the statements of a text, with the lines they stand in."""
    if len(text) > _LONGEST_READ:
        return
    plain = text.replace("\r\n", "\n").replace("\r", " ")
    yield from parse_instructions(plain).statements


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _place(path: str) -> Path:
    """Return the parts of a path below the root.

    Raises:
        ToolError: If the path is outside.
    """
    if not path.startswith(_ROOT):
        raise ToolError(f"Path must start with /memories, got: {path}")
    below = path[len(_ROOT) :]
    if below and not below.startswith("/"):
        raise ToolError(f"Path must start with /memories, got: {path}")
    parts = posixpath.normpath(f"{below.strip('/') or '.'}").split("/")
    if parts[0] == ".." or "\0" in path:
        raise ToolError(f"Path {path} would escape /memories directory")
    return () if parts == ["."] else tuple(parts)


def _path_of(item: Item) -> Path:
    return (*item.namespace, item.name)


def _shown(place: Path) -> str:
    return "/".join((_ROOT, *place))


def _lines_with(content: str, old: str) -> Iterator[int]:
    """Yield the lines in which a text begins, also where it overlaps itself."""
    at = content.find(old)
    while at != -1:
        yield content[:at].count("\n") + 1
        at = content.find(old, at + 1)


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _listing(path: str, place: Path, tree: Mapping[Path, str]) -> str:
    """Return a folder's files and folders, two levels deep."""
    sizes: dict[Path, int] = {}
    for name, text in tree.items():
        rest = name[len(place) :]
        if name[: len(place)] != place or any(part.startswith(".") for part in rest[:2]):
            continue
        size = len(text.encode("utf-8", "surrogatepass"))
        for length in range(min(2, len(rest)) + 1):
            sizes[rest[:length]] = sizes.get(rest[:length], 0) + size
    lines = [
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:",
        f"{_size(sizes.pop((), 0))}\t{path}",
    ]
    for rest, size in sorted(sizes.items()):
        folder = "" if (*place, *rest) in tree else "/"
        lines.append(f"{_size(size)}\t{path}/{'/'.join(rest)}{folder}")
    return "\n".join(lines)


def _size(count: int) -> str:
    """Return a size as the reference shows it.

    >>> _size(0), _size(1536), _size(2 * 1024 * 1024)
    ('0B', '1.5K', '2M')
    """
    if count == 0:
        return "0B"
    unit = min((count.bit_length() - 1) // 10, len(_SIZES) - 1)
    size = count / 1024**unit
    return f"{int(size)}{_SIZES[unit]}" if size == int(size) else f"{size:.1f}{_SIZES[unit]}"


@contextmanager
def _told_as_tool_error() -> Iterator[None]:
    """Tell a model of trouble with the store, and the log why."""
    try:
        yield
    except (ToolError, asyncio.CancelledError):
        raise
    except Exception as error:
        code = getattr(error, "code", type(error).__name__)
        log.warning("adapter.failed", at=FRAMEWORK, error=code, message=error)
        raise ToolError(_UNREACHABLE) from error


class SmaraMemoryTool(BetaAbstractMemoryTool):
    """Anthropic's memory tool over a memory, for ``tool_runner(tools=[…])``."""

    def __init__(self, memory: Memory, **given: Any) -> None:
        """Make the tool.

        Args:
            memory: The memory whose project the files belong to.
            **given: ``session_id`` and ``thread_id``, as for :class:`MemoryFiles`, and
                ``cache_control``.
        """
        super().__init__(cache_control=given.pop("cache_control", None))
        self.tree = MemoryFiles(memory, **given)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        with _told_as_tool_error():
            return self.tree.view(command.path, command.view_range)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        with _told_as_tool_error():
            return self.tree.create(command.path, command.file_text)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        with _told_as_tool_error():
            return self.tree.str_replace(command.path, command.old_str, command.new_str)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        with _told_as_tool_error():
            return self.tree.insert(command.path, command.insert_line, command.insert_text)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        with _told_as_tool_error():
            return self.tree.delete(command.path)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        with _told_as_tool_error():
            return self.tree.rename(command.old_path, command.new_path)

    def clear_all_memory(self) -> str:
        """Delete all files; what people taught stays."""
        with _told_as_tool_error():
            return self.tree.clear()


class SmaraAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for an async client, run in threads."""

    def __init__(self, memory: Memory, **given: Any) -> None:
        """Make the tool, as :class:`SmaraMemoryTool` is made."""
        super().__init__(cache_control=given.pop("cache_control", None))
        self._tool = SmaraMemoryTool(memory, **given)
        self.tree = self._tool.tree

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Delete all files; what people taught stays."""
        return await asyncio.to_thread(self._tool.clear_all_memory)
