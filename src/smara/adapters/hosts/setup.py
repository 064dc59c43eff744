"""Find the hosts on this machine; plan, apply and undo their setup.

The journal keeps each file's bytes before setup changed it, private and outside the
repository. An untouched file is restored byte for byte; from a file edited since, only our
part is removed. A block in TOML or Markdown stands between two marks.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal, get_args
from zlib import crc32

from smara.adapters import jsonc
from smara.adapters.host import Block, Reach, Setup, SetupTarget
from smara.adapters.host_specs import HOSTS, host_named
from smara.core.files import make_private, read_regular
from smara.core.git import find_repository, git_text
from smara.core.startup.record import dataclass
from smara.core.startup.regex import re, regex
from smara.errors import InvalidInputError, SmaraError

_BLOCK_MARKS: dict[Block, tuple[str, str]] = {
    "toml": ("# smara:begin v1 (managed by `smara setup`)", "# smara:end"),
    "markdown": ("<!-- smara:begin v1 (managed by `smara setup`) -->", "<!-- smara:end -->"),
}
_BLOCKS: dict[Block, re.Pattern[str]] = {
    "toml": regex(r"(?:\r?\n)?^# smara:begin[^\n]*\n.*?^# smara:end[^\n]*\n?", re.S | re.M),
    "markdown": regex(
        r"(?:\r?\n)?^<!-- smara:begin[^\n]*\n.*?^<!-- smara:end -->[^\n]*\n?", re.S | re.M
    ),
}


def put_block(text: str, form: Block, body: str) -> str:
    """Return the text with the block at its end, replacing another."""
    text = cut_block(text, form)
    newline = "\r\n" if "\r\n" in text else "\n"
    begin, end = _BLOCK_MARKS[form]
    lines = [begin, *body.strip("\n").split("\n"), end]
    gap = "" if not text or text == "\ufeff" else newline if text.endswith("\n") else newline * 2
    return text + gap + newline.join(lines) + newline


def cut_block(text: str, form: Block) -> str:
    """Return the text without the block."""
    return _BLOCKS[form].sub("", text)


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One file that was changed."""

    path: str
    before: bytes | None
    """``None`` when there was no such file."""
    written_hash: str
    made_folders: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SetupJournal:
    """The entries of one user, in a folder of their own."""

    folder: str

    def find(self, path: str) -> JournalEntry | None:
        """Return the entry of a file; ``None`` if missing or damaged."""
        try:
            with open(self._place(path), "rb") as file:
                row = json.loads(file.read())
            before = (
                None if row["before"] is None else base64.b64decode(row["before"], validate=True)
            )
            if row["path"] != path or (before is not None and hash_of(before) != row["beforeHash"]):
                return None
            return JournalEntry(
                path, before, row["writtenHash"], made_folders=tuple(row["madeFolders"])
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, entry: JournalEntry) -> None:
        """Store an entry on disk before its file is touched."""
        make_private(str(self.folder))
        row = {
            "path": entry.path,
            "before": None if entry.before is None else base64.b64encode(entry.before).decode(),
            "beforeHash": None if entry.before is None else hash_of(entry.before),
            "writtenHash": entry.written_hash,
            "madeFolders": list(entry.made_folders),
        }
        write_whole(self._place(entry.path), json.dumps(row).encode(), 0o600)

    def forget(self, path: str) -> None:
        """Drop an entry."""
        with suppress(FileNotFoundError):
            os.unlink(self._place(path))

    def _place(self, path: str) -> str:
        name = path.encode("utf-8", "surrogateescape")
        return os.path.join(self.folder, f"{crc32(name):08x}{crc32(name, 1):08x}.json")


def hash_of(content: bytes) -> str:
    """Return the hash by which a content is recognised."""
    return hashlib.sha256(content).hexdigest()


def write_whole(path: str, content: bytes, mode: int | None = None) -> None:
    """Write a file atomically; permissions and links stay as they are."""
    real = os.path.realpath(path)
    hidden = f"{real}.smara-{os.getpid()}"
    if mode is None:
        mode = os.stat(real).st_mode & 0o7777 if os.path.exists(real) else 0o644
    try:
        file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(hidden, mode)
        os.replace(hidden, real)
    except BaseException as error:
        if os.path.exists(hidden):
            os.unlink(hidden)
        if isinstance(error, PermissionError):  # on Windows also: a program has it open
            raise InvalidInputError(
                f"{path} cannot be written: {error.strerror}. Close what has it open, or check its "
                "permissions."
            ) from None
        raise


State = Literal["absent", "present", "differs"]


@dataclass(frozen=True, slots=True)
class SetupChange:
    """One file before and after; ``None`` stands for a missing file."""

    path: str
    before: bytes | None
    after: bytes | None
    base: bytes | None
    """What undoing gives back."""

    @property
    def is_needed(self) -> bool:
        """True if there is anything to do."""
        return self.before != self.after

    def diff(self) -> str:
        """The change as people read it."""
        old, new = (
            [
                line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
                for line in (content or b"").decode("utf-8", "replace").splitlines(keepends=True)
            ]
            for content in (self.before, self.after)
        )
        was = os.devnull if self.before is None else self.path
        will_be = os.devnull if self.after is None else self.path
        return "".join(difflib.unified_diff(old, new, was, will_be))


def plan(targets: Sequence[SetupTarget], journal: SetupJournal) -> list[SetupChange]:
    """Plan the changes of a setup.

    Raises ``InvalidInputError`` for a file that cannot be read as what it is.
    """
    changes = []
    for target in targets:
        before = _read(target.path)
        base = _base(target, before, journal)
        text = _decode(base or b"", target.path)
        after = before
        if target.is_former:  # an entry that we did not write is the user's own
            after = base if journal.find(target.path) is not None else before
        elif not (target.changes_itself and before is not None and _has_ours(target, before)):
            if target.form == "own":
                if base is not None:
                    raise InvalidInputError(
                        f"{target.path} is there and is not ours. Move it away, then set up again."
                    )
                text = target.body
            elif target.form == "json":
                with _naming(target.path):
                    text = jsonc.merge(text, target.additions)
            else:
                text = put_block(text, target.form, target.body)
            after = text.encode("utf-8", "surrogateescape")
        changes.append(SetupChange(target.path, before, after, base=base))
    return changes


def refuse_tracked(changes: Sequence[SetupChange], root: str, agent: str) -> None:
    """Refuse to change files that git tracks; they would be committed.

    Raises:
        InvalidInputError: If one of the files that would change is tracked.
    """
    for change in changes:
        is_written = change.is_needed and change.after != change.base
        if is_written and git_text(root, "ls-files", "--", change.path):
            raise InvalidInputError(
                f"{change.path} is tracked by git, so it would be committed with paths of this "
                f"machine. `smara setup {agent} --global` uses your own settings."
            )


def undo_plan(targets: Sequence[SetupTarget], journal: SetupJournal) -> list[SetupChange]:
    """Plan the removal of everything that is ours."""
    plan = []
    for target in targets:
        before = _read(target.path)
        if before is not None:
            base = _base(target, before, journal)
            plan.append(SetupChange(target.path, before, base, base=base))
    return plan


def apply(changes: Sequence[SetupChange], journal: SetupJournal) -> int:
    """Apply changes; return the number of files.

    The journal is written before the file, so that no kill leaves it unknown.
    """
    needed = [change for change in changes if change.is_needed]
    for change in sorted(needed, key=lambda change: change.after != change.base):
        if change.after is None or change.after == change.base:  # our part of it goes
            undo([change], journal)
            continue
        made = []
        folder = os.path.dirname(change.path)
        while folder and not os.path.isdir(folder):
            made.append(folder)
            folder = os.path.dirname(folder)
        entry = journal.find(change.path)
        folders = tuple(dict.fromkeys((*made, *(entry.made_folders if entry else ()))))
        journal.put(
            JournalEntry(change.path, change.base, hash_of(change.after), made_folders=folders)
        )
        os.makedirs(os.path.dirname(change.path), exist_ok=True)
        write_whole(change.path, change.after)
    return len(needed)


def undo(changes: Sequence[SetupChange], journal: SetupJournal) -> int:
    """Undo changes; return the number of files restored or removed.

    Folders that setup made go too, if they are empty.
    """
    made: set[str] = set()
    for change in changes:
        entry = journal.find(change.path)
        made |= set(entry.made_folders if entry else ())
        if change.is_needed:
            if change.after is None:
                os.unlink(change.path)
            else:
                write_whole(change.path, change.after)
        journal.forget(change.path)
    for folder in sorted(made, key=len, reverse=True):
        with suppress(OSError):  # another program has put something there
            os.rmdir(folder)
    return sum(change.is_needed for change in changes)


def state_of(target: SetupTarget, journal: SetupJournal) -> State:
    """Return the state of our part of a file, for this version."""
    change = plan([target], journal)[0]
    if not change.is_needed:
        return "present"
    return "differs" if change.before is not None and _has_ours(target, change.before) else "absent"


def _base(target: SetupTarget, before: bytes | None, journal: SetupJournal) -> bytes | None:
    """The file without anything of ours."""
    entry = journal.find(target.path)
    if before is None:
        return None
    if entry is not None and hash_of(before) == entry.written_hash:
        return entry.before
    if target.form == "own":
        return None if _has_ours(target, before) else before
    text = _decode(before, target.path)
    if target.form == "json":
        with _naming(target.path):
            bare = jsonc.remove(text, target.is_ours)
    else:
        bare = cut_block(text, target.form)
    if entry is not None and entry.before is None and not bare.strip("{} \t\r\n\ufeff"):
        return None  # it was made by us, and nothing was added by anybody
    return bare.encode("utf-8", "surrogateescape")


def _has_ours(target: SetupTarget, content: bytes) -> bool:
    text = content.decode("utf-8", "replace")
    if target.form == "own":
        return "smara" in text and "hook" in text
    if target.form == "json":
        return jsonc.remove(text, target.is_ours) != text
    return _BLOCKS[target.form].search(text) is not None


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Say what is wrong with a file's text together with the file's name."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{path}: {error} Nothing was changed; mend the file first.", path=path
        ) from None


def _read(path: str) -> bytes | None:
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be read: {error.strerror}. Check its permissions."
        ) from None


def _decode(content: bytes, path: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"{path} is not written in UTF-8, so nothing was changed. Save it as UTF-8."
        ) from None


@dataclass(frozen=True, slots=True)
class FoundHost:
    """An agent on this machine."""

    agent: str
    name: str
    setup: Setup
    program: str | None
    """Where its program is; ``None`` when only its folder was found."""
    folder: str
    set_up: tuple[Reach, ...]
    """Where it is set up already."""
    has_plugin: bool = False
    """Whether it has our plug-in switched on, which does the same."""

    @property
    def is_set_up(self) -> bool:
        """True if it calls us, by its settings or by the plug-in."""
        return bool(self.set_up) or self.has_plugin


def find_hosts(root: str, journal: SetupJournal) -> list[FoundHost]:
    """Find the agents of this machine by their programs and folders."""
    hosts = []
    for host in HOSTS:
        if host.setup is None or host.setup.home is None:
            continue
        path = next(filter(None, map(shutil.which, host.setup.programs)), None)
        folder = host.setup.home.path
        if not path and not os.path.isdir(folder):
            continue
        reaches: list[Reach] = []
        for reach in get_args(Reach):
            # A file that cannot be read is for `smara setup --check` to speak of.
            with suppress(SmaraError, OSError):
                targets = targets_of(host.name, reach, root, program=program())
                if state_of(targets[0], journal) != "absent" or any(
                    each.is_former and _has_ours(each, _read(each.path) or b"") for each in targets
                ):
                    reaches.append(reach)
        hosts.append(
            FoundHost(
                host.name,
                host.title,
                host.setup,
                program=path,
                folder=folder,
                set_up=tuple(reaches),
                has_plugin=host.setup.has_plugin(folder, root),
            )
        )
    return hosts


def targets_of(agent: str, reach: Reach, root: str, program: str = "smara") -> list[SetupTarget]:
    """Return the files that make a host call us.

    Raises:
        InvalidInputError: The host has nothing to set up, or not with this reach.
    """
    host = host_named(agent)
    if host.setup is not None and host.setup.is_global and reach == "project":
        raise InvalidInputError(
            f"{host.title} has no settings of a repository. `smara setup {agent} --global` sets it "
            "up for all of them."
        )
    targets = host.setup.targets(reach, root, program) if host.setup is not None else []
    if host.setup is None or not targets:
        reason = host.setup.by_hand if host.setup else "It takes neither hooks nor servers."
        raise InvalidInputError(f"{host.title or host.name} cannot be set up so. {reason}")
    if reach == "project" and host.setup.home is not None and find_repository(root) is not None:
        # What is set up here is not for others to commit, and may hold a path of this machine.
        folder = next(iter(os.path.relpath(targets[0].path, root).split(os.sep)))
        names = [
            "/" + os.path.relpath(each.path, os.path.join(root, folder)).replace(os.sep, "/")
            for each in targets
            if not each.is_former
        ]
        path = os.path.join(root, folder, ".gitignore")
        targets.append(SetupTarget(path, "toml", body="\n".join(["/.gitignore", *names])))
    if reach == "project" and host.setup.home is not None:
        everywhere = {each.path for each in host.setup.targets("global", root, program)}
        shared = [each.path for each in targets if each.path in everywhere and not each.is_former]
        if shared:
            raise InvalidInputError(
                f"{shared[0]} counts for all repositories. `smara setup {agent} --global` changes "
                "it."
            )
    return targets


def program() -> str:
    """Return the program that hosts call: its name, or its whole path.

    A name outlives an upgrade that moves the program, and a path outlives a shell without our
    folder.
    """
    if shutil.which("smara"):
        return "smara"
    beside = os.path.join(
        os.path.dirname(sys.executable), "smara.exe" if sys.platform == "win32" else "smara"
    )
    return beside if os.path.exists(beside) else "smara"
