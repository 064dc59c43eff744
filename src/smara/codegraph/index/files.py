"""List a tree's files by git's ignore rules; read safely.

A link is never followed out of the tree, and a file that changes while it is read is read again.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from smara.codegraph.language import kind_of
from smara.codegraph.models import SkipReason
from smara.core.items import grouped
from smara.core.paths import is_generated_folder, is_output_folder
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex
from smara.secrets.redact import clean_id

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


_HAS_STEPS = (
    os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
)
_HAS_LISTED_STEPS = _HAS_STEPS and os.scandir in os.supports_fd
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
    # A pipe without a writer would keep the opener waiting for ever.
    | getattr(os, "O_NONBLOCK", 0)
)
_FOLDER = _FLAGS | getattr(os, "O_DIRECTORY", 0)
_PIECE = 1 << 18
_ATTEMPTS = 3


def content_hash(data: bytes) -> bytes:
    """Return sixteen bytes that tell one content from another."""
    return hashlib.blake2b(data, digest_size=16).digest()


class Opened(NamedTuple):
    """A file's content with its size and time of change."""

    data: bytes
    size: int
    mtime_ns: int


class NotRead(Exception):
    """Something was not read; ``reason`` says why."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason)
        self.reason = reason


class TreeReader:
    """A reader of files below a root, by relative paths."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    def read(self, path: str, most_bytes: int) -> Opened:
        """Return the content of a regular file inside the root.

        Raises ``NotRead`` if it is something else, too big or keeps changing.
        """
        for _ in range(_ATTEMPTS):
            with self._opened(path) as number:
                before = os.fstat(number)
                if not stat.S_ISREG(before.st_mode):
                    raise NotRead("not_a_file")
                if before.st_size > most_bytes:
                    raise NotRead("too_big")
                data = b""
                while len(data) <= most_bytes:
                    if not (piece := os.read(number, min(_PIECE, most_bytes + 1 - len(data)))):
                        break
                    data += piece
                after = os.fstat(number)
            if len(data) > most_bytes:
                raise NotRead("too_big")
            # Half of an old and half of a new version would be indexed as a file that never was.
            is_same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
            if is_same and len(data) == after.st_size:
                return Opened(data, after.st_size, after.st_mtime_ns)
        raise NotRead("changing")

    def find(self, path: str, most_bytes: int = 1 << 20) -> bytes | None:
        """Return a file's content, or ``None`` if it cannot be read."""
        try:
            return self.read(path, most_bytes).data
        except NotRead:
            return None

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        folder, _, name = path.rpartition("/")
        try:
            if _HAS_STEPS:
                with self._folder(folder) as above:
                    # Looked at before it is opened: opening a device may already do something.
                    if not stat.S_ISREG(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
                        raise NotRead("not_a_file")
                    number = os.open(name, _FLAGS, dir_fd=above)
            else:
                number = os.open(self._inside(path, stat.S_ISREG), _FLAGS)
        except (OSError, ValueError) as error:
            raise NotRead("unreadable") from error
        try:
            yield number
        except OSError as error:
            raise NotRead("unreadable") from error
        finally:
            os.close(number)

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        number = os.open(self.root, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
        try:
            for step in path.split("/") if path else ():
                if step in ("", ".", ".."):
                    raise NotRead("outside")
                below = os.open(step, _FOLDER, dir_fd=number)
                os.close(number)
                number = below
            yield number
        finally:
            os.close(number)

    @contextmanager
    def listing(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of a folder inside the root.

        ``NotRead`` when it cannot be listed.
        """
        try:
            if _HAS_LISTED_STEPS:
                with self._folder(path) as number, os.scandir(number) as entries:
                    yield entries
            else:
                with os.scandir(self._inside(path, stat.S_ISDIR)) as entries:
                    yield entries
        except (OSError, ValueError) as error:
            raise NotRead("unreadable") from error

    def _inside(self, path: str, is_kind: Callable[[int], bool]) -> str:
        """Return where a path really leads, when that is inside the root.

        For systems that cannot open step by step.
        """
        full = os.path.join(self.root, *path.split("/")) if path else self.root
        if os.path.realpath(full) != os.path.normpath(full):
            raise NotRead("outside")
        if not is_kind(os.lstat(full).st_mode):
            raise NotRead("not_a_file")
        return full

    def leads_outside(self, path: str) -> bool:
        """Return True if a link leads out of the root, or nowhere."""
        try:
            target = os.path.realpath(os.path.join(self.root, *path.split("/")), strict=True)
        except (OSError, ValueError):
            return True
        return os.path.commonpath([self.root, target]) != self.root


RULE_FILES = (".gitignore", ".smaraignore")
_LARGEST_RULES = 256 * 1024
_MOST_RULES = 5_000

_SECRET_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"}
)

_SECRET_NAMES = regex(
    "|".join(
        translate(pattern)
        for pattern in re.findall(
            r"\S+",
            ".env .env.* *.env .envrc *.pem *.key *.p12 *.pfx *.p8 *.jks *.keystore *.truststore "
            "*.kdbx *.ppk *.gpg"
            " *.age *.ovpn id_rsa id_rsa.* id_dsa id_dsa.* id_ecdsa id_ecdsa.* id_ed25519 "
            "id_ed25519.* .netrc _netrc"
            " .pgpass .my.cnf .npmrc"
            " .yarnrc .yarnrc.yml .pypirc .htpasswd .git-credentials .dockercfg .dockerconfigjson"
            " kubeconfig *.kubeconfig credentials credentials.json credentials.y*ml "
            "credentials.toml credentials.ini"
            " credentials.xml credentials.csv credentials.db *.credentials secrets secrets.json "
            "secrets.y*ml"
            " secrets.toml secrets.ini secrets.env secret.json secret.y*ml *.secret *.secrets "
            "client_secret*.json"
            " service-account*.json service_account*.json serviceaccount*.json "
            "*-service-account.json"
            " application_default_credentials.json *.tfstate *.tfstate.* *.tfvars *.tfvars.json "
            ".vault-token *.vault"
            " vault.y*ml master.key token .token *.token .s3cfg .boto .terraformrc terraform.rc "
            "auth.json .pgpass.conf"
            " *.agekey *.asc *.mobileprovision *.cer *.der *.crt htpasswd shadow",
        )
    ),
    re.IGNORECASE,
)
_EXAMPLES = regex(
    r".*\.(?:example|sample|template|tmpl|dist|defaults?)(?:\.[a-z]+)?$", re.IGNORECASE
)


class IgnoreRules(NamedTuple):
    """The patterns of one folder and its path.

    The path ends with a slash; it is empty for the root.
    """

    base: str
    spec: GitIgnoreSpec


def holds_secrets(path: str) -> bool:
    """Return True if a file's name suggests secrets.

    >>> [holds_secrets(path) for path in (".env", "src/secrets.py", "deploy/prod.pem", ".env.example")]
    [True, False, True, False]
    """  # noqa: E501
    *folders, name = path.split("/")
    if any(folder in _SECRET_FOLDERS for folder in folders):
        return True
    return _SECRET_NAMES.match(name) is not None and _EXAMPLES.match(name) is None


def rules_in(
    reader: TreeReader, folder: str, names: Collection[str], above: Sequence[IgnoreRules]
) -> Sequence[IgnoreRules]:
    """Return the rules that hold in a folder.

    Those from above, then its own.
    """
    lines: list[str] = []
    for name in RULE_FILES:
        if name in names:
            data = reader.find(f"{folder}/{name}" if folder else name, _LARGEST_RULES) or b""
            lines += data.decode("utf-8", "replace").splitlines()[:_MOST_RULES]
    spec = spec_of(tuple(lines))
    return above if spec is None else (*above, IgnoreRules(f"{folder}/" if folder else "", spec))


@lru_cache(maxsize=64)
def spec_of(lines: tuple[str, ...]) -> GitIgnoreSpec | None:
    """Return the patterns of some lines, or ``None``.

    Kept, since compiling the patterns of a repository takes longer than reading a saved file.
    """
    from pathspec import GitIgnoreSpec

    patterns = [line for line in lines if line.strip() and not line.startswith("#")]
    with suppress(Exception):
        return GitIgnoreSpec.from_lines(patterns) if patterns else None
    usable = []  # without a pattern that means nothing, as git does
    for line in patterns:
        with suppress(Exception):
            GitIgnoreSpec.from_lines([line])
            usable.append(line)
    return GitIgnoreSpec.from_lines(usable) if usable else None


def is_ignored(rules: Sequence[IgnoreRules], path: str, is_folder: bool) -> bool:
    """Return True if the rules leave a path out.

    The rule nearest to it decides.
    """
    shown = f"{path}/" if is_folder else path
    for base, spec in reversed(rules):
        if (verdict := spec.check_file(shown[len(base) :]).include) is not None:
            return verdict
    return False


MOST_BYTES = 1_000_000
"""A larger file is a dump, a bundle or data; a person's source file is smaller."""
MOST_DATA_BYTES = 200_000
MOST_FILES = 200_000
MOST_ENTRIES = 2_000_000
DEEPEST = 64
_LONGEST_PATH = 1_000


class FileEntry(NamedTuple):
    """A file that is worth reading.

    Its size and time of change as the folder tells them.
    """

    size: int
    mtime_ns: int


@dataclass(slots=True)
class WalkResult:
    """The files of a tree by path, and counts of skipped entries."""

    files: dict[str, FileEntry] = field(default_factory=dict)
    skipped: Counter[SkipReason] = field(default_factory=Counter)


class FileWalk:
    """One walk over a tree.

    ``tracked`` are the files git tracks, ``None`` where there is no git. The names in ``clean``
    were scanned for secrets when they were indexed.
    """

    def __init__(
        self,
        reader: TreeReader,
        excludes: Sequence[str] = (),
        tracked: frozenset[str] | None = None,
        clean: Container[str] = (),
    ) -> None:
        self._reader = reader
        self._tracked, self._clean = tracked, clean
        self._tracked_folders: set[str] = set()
        for path in tracked or ():
            folder = path.rpartition("/")[0]
            while folder and folder not in self._tracked_folders:
                self._tracked_folders.add(folder)
                folder = folder.rpartition("/")[0]
        spec = spec_of(tuple(excludes))
        self._base: Sequence[IgnoreRules] = () if spec is None else (IgnoreRules("", spec),)
        self._entries = 0

    def all(self) -> WalkResult:
        """Return every file worth reading."""
        walked = WalkResult()
        waiting = [("", 0, self._base)]
        while waiting:
            folder, depth, rules = waiting.pop()
            try:
                entries = self._list(folder, walked)
            except NotRead as error:
                walked.skipped[error.reason] += 1
                continue
            names = {name for name, *_ in entries}
            if folder and self._is_foreign(folder, folder.rpartition("/")[2], names):
                walked.skipped["ignored"] += 1
                continue
            rules = rules_in(self._reader, folder, names, above=rules)
            for name, mode, entry in entries:
                if name == ".git":
                    continue  # git's own, and nothing that was left out of the code
                path = f"{folder}/{name}" if folder else name
                if not stat.S_ISDIR(mode):
                    self._consider(path, mode, entry, rules=rules, walked=walked)
                elif not is_sayable(path):
                    walked.skipped["unreadable"] += 1
                elif depth + 1 >= DEEPEST:
                    walked.skipped["too_many"] += 1
                elif self._is_left_out(path, name, rules):
                    walked.skipped["ignored"] += 1
                else:
                    waiting.append((path, depth + 1, rules))
        return walked

    def _list(self, folder: str, walked: WalkResult) -> list[tuple[str, int, FileEntry]]:
        entries: list[tuple[str, int, FileEntry]] = []
        with self._reader.listing(folder) as listed:
            for entry in listed:
                self._entries += 1
                if self._entries > MOST_ENTRIES:
                    walked.skipped["too_many"] += 1
                    break
                entries.append((entry.name, *_looked_at(entry)))
        return sorted(entries, key=lambda entry: entry[0])

    def some(self, paths: Sequence[str]) -> WalkResult:
        """Return which of some paths a full walk would find."""
        walked = WalkResult()
        for folder, inside in grouped(map(posixpath.split, paths)).items():
            names = set(inside)
            if (rules := self._rules_down_to(folder)) is None:
                walked.skipped["ignored"] += len(names)
                continue
            try:
                with self._reader.listing(folder) as listed:
                    entries = [(e.name, *_looked_at(e)) for e in listed if e.name in names]
            except NotRead:
                continue
            for name, mode, entry in entries:
                if not stat.S_ISDIR(mode):
                    path = f"{folder}/{name}" if folder else name
                    self._consider(path, mode, entry, rules=rules, walked=walked)
        return walked

    def _rules_down_to(self, folder: str) -> Sequence[IgnoreRules] | None:
        """Return the rules that hold in a folder.

        ``None`` when a walk would not go there.
        """
        rules: Sequence[IgnoreRules] = self._base
        above = ""
        steps = folder.split("/") if folder else []
        if len(steps) >= DEEPEST:
            return None
        for name in ("", *steps):
            path = f"{above}/{name}" if above else name
            if name and self._is_left_out(path, name, rules):
                return None
            try:
                with self._reader.listing(path) as entries:
                    inside = {entry.name for entry in entries if entry.name in _SPECIAL}
            except NotRead:
                return None
            if name and self._is_foreign(path, name, inside):
                return None
            rules = rules_in(self._reader, path, inside, above=rules)
            above = path
        return rules

    def _is_left_out(self, path: str, name: str, rules: Sequence[IgnoreRules]) -> bool:
        return is_generated_folder(name) or (
            path not in self._tracked_folders
            and (is_output_folder(name) or is_ignored(rules, path, is_folder=True))
        )

    def _is_foreign(self, path: str, name: str, inside: set[str] | frozenset[str]) -> bool:
        """Return True if a folder is a machine's, or another worktree.

        A tree of its own, with all of these files again.
        """
        if "pyvenv.cfg" in inside or "CACHEDIR.TAG" in inside or is_generated_folder(name):
            return path not in self._tracked_folders or "pyvenv.cfg" in inside
        if ".git" not in inside:
            return False
        marker = self._reader.find(f"{path}/.git", 4_096) or b""
        return marker.startswith(b"gitdir:") and b"/worktrees/" in marker.replace(b"\\", b"/")

    def _consider(
        self,
        path: str,
        mode: int,
        entry: FileEntry,
        rules: Sequence[IgnoreRules],
        walked: WalkResult,
    ) -> None:
        if reason := self._reason_against(path, mode, entry, rules=rules):
            walked.skipped[reason] += 1
        elif len(walked.files) >= MOST_FILES:
            walked.skipped["too_many"] += 1
        else:
            walked.files[path] = entry

    def _reason_against(
        self, path: str, mode: int, entry: FileEntry, rules: Sequence[IgnoreRules]
    ) -> SkipReason | None:
        if stat.S_ISLNK(mode):
            return "outside" if self._reader.leads_outside(path) else "not_a_file"
        if not stat.S_ISREG(mode):
            return "not_a_file" if mode else "unreadable"
        if path not in self._clean and (
            not is_sayable(path) or holds_secrets(path) or clean_id(path) != path
        ):
            return "secret" if is_sayable(path) else "unreadable"
        if not (self._tracked and path in self._tracked) and is_ignored(
            rules, path, is_folder=False
        ):
            return "ignored"
        kind = kind_of(path)
        if kind not in ("code", "prose", "data", None):
            return kind  # type: ignore[return-value]  # what is no kind is a reason
        most = MOST_BYTES if kind == "code" else MOST_DATA_BYTES
        return "too_big" if entry.size > most else None


_SPECIAL = frozenset({*RULE_FILES, ".git", "pyvenv.cfg", "CACHEDIR.TAG"})


def is_sayable(path: str) -> bool:
    """Return True if a path can be stored and shown.

    Control characters in a name are a joke or an attack.
    """
    return (
        len(path) <= _LONGEST_PATH and path.isprintable()
    )  # half a surrogate is not printable either


def _looked_at(entry: os.DirEntry[str]) -> tuple[int, FileEntry]:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:
        return 0, FileEntry(0, 0)
    return facts.st_mode, FileEntry(facts.st_size, facts.st_mtime_ns)
