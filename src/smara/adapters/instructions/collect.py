"""Find and read the instruction files of a repository.

The table of names is data. Vendored code, build output and nested repositories are skipped,
links to folders are not followed, and a file with two names (``CLAUDE.md`` linked to
``AGENTS.md``) is read once. `mentions_in` finds the files that a statement is about.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from smara.adapters.host import glob_sorted
from smara.adapters.instructions.markdown import InstructionFile, Parsed
from smara.adapters.instructions.parse import parse_instructions
from smara.core.extract import word_set
from smara.core.files import read_regular
from smara.core.git import find_repository, git_text, is_blob
from smara.core.host_table import INSTRUCTION_FILES
from smara.core.paths import FILE_EXTENSIONS, GENERATED_FOLDERS, OUTPUT_FOLDERS, host_of
from smara.core.startup.record import dataclass, field, replace
from smara.core.startup.regex import re, regex
from smara.errors import InvalidInputError, NotFoundError

_NOT_ENTERED = (
    GENERATED_FOLDERS
    | OUTPUT_FOLDERS
    | word_set("deps tmp .env")
    | {pattern.split("/")[0] for _, pattern in INSTRUCTION_FILES if "/" in pattern}
)
# A tree with more folders is looked at so far; instruction files stand near the top.
MOST_FOLDERS = 20_000


def find_instructions(root: str | os.PathLike[str]) -> list[InstructionFile]:
    """Return the instruction files below a folder.

    Those of the folder itself come first, then the others in order of their paths.
    """
    base = Path(os.path.realpath(root))
    files: dict[str, InstructionFile] = {}
    for folder, names in _folders(base):
        about = "" if folder == base else folder.relative_to(base).as_posix()
        for host, pattern in INSTRUCTION_FILES:
            first, _, rest = pattern.partition("/")
            is_many = "*" in pattern
            # No disk is asked for what is not there.
            if first.lower() not in names or (is_many and not (folder / first).is_dir()):
                continue
            for path in glob_sorted(folder / first, rest) if is_many else [folder / pattern]:
                place = os.path.realpath(path)
                # A link may lead out of the repository: what is there is not the repository's.
                if os.path.isfile(place) and Path(place).is_relative_to(base):
                    relative = path.relative_to(base).as_posix()
                    file = InstructionFile(
                        relative, place, host, folder=about, is_personal=".local." in path.name
                    )
                    files.setdefault(place, file)
    return list(files.values())


def root_of(root: str | os.PathLike[str] | None = None) -> str:
    """Return the repository around a folder, or the folder itself."""
    start = os.getcwd() if root is None else os.fspath(root)
    repository = find_repository(start)
    return repository.root if repository is not None and root is None else start


def commits_of(root: str, paths: Iterable[str]) -> dict[str, str]:
    """Return the commit of each unchanged file.

    A changed or untracked file has none.

    Nothing for a folder that is no git repository, nor where there is no git.
    """
    names = list(paths)
    git = partial(git_text, root, timeout_seconds=10)
    head = (git("rev-parse", "--verify", "-q", "HEAD") or "").strip()
    if not head or not names:
        return {}
    # `git status` would run the filters that a repository names, so contents are compared here.
    entries = (git("ls-tree", "-z", "HEAD", "--", *names) or "").split("\0")
    facts = [entry.partition("\t") for entry in entries if entry]
    blobs = {path: about.split()[-1] for about, _, path in facts}
    return {
        name: head
        for name in names
        if name in blobs and is_blob(os.path.join(root, name), blobs[name])
    }


def as_instruction_file(root: str, path: str | os.PathLike[str]) -> InstructionFile:
    """Describe a named file, whether a host reads it or not."""
    place = Path(os.path.realpath(path))
    if not place.is_relative_to(root):
        return InstructionFile(place.as_posix(), str(place), "any", is_personal=True)
    relative = place.relative_to(root).as_posix()
    host, folder = host_of(relative) or ("any", "")
    is_personal = host != "any" and ".local." in place.name
    return InstructionFile(relative, str(place), host, folder=folder, is_personal=is_personal)


def _folders(base: Path) -> Iterator[tuple[Path, Container[str]]]:
    """The folder and those below it with the names in each, shallow ones first, in their order."""
    waiting, count = deque([base]), 0
    while waiting and count < MOST_FOLDERS:
        folder = waiting.popleft()
        try:
            with os.scandir(folder) as found:
                entries = {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
        except OSError:
            continue
        if folder != base and ".git" in entries:  # a repository of its own
            continue
        count += 1
        # Lower case: there are disks on which a name is the same in capitals.
        yield folder, {name.lower() for name in entries}
        waiting += [
            folder / name for name in sorted(entries) if entries[name] and name not in _NOT_ENTERED
        ]


# A longer file tells no agent how to work; it is refused by name.
MAX_BYTES = 500_000
_DRAWN_IN = (".md", ".mdc", ".markdown")
_MOST_DEEP = 5
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(frozen=True, slots=True)
class Read:
    """A file and what it says."""

    file: InstructionFile
    parsed: Parsed


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """A referenced file that was not read, with the reason."""

    path: str
    line: int
    target: str
    reason: str


@dataclass(slots=True)
class InstructionSet:
    """Everything an import is about.

    Attributes:
        is_whole: Whether all files of the root were looked for: one that is missing now is gone.
        folders: Folders elsewhere that were looked through whole, too.
    """

    root: str
    is_whole: bool
    read: list[Read] = field(default_factory=list)
    not_followed: list[NotFollowed] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    folders: tuple[str, ...] = ()

    def was_looked_for(self, path: str) -> bool:
        """Return True if a file here would have been read."""
        return any(path.startswith(f"{folder}/") for folder in self.folders)


def gather(
    root: str | os.PathLike[str], paths: Sequence[str | os.PathLike[str]] = ()
) -> InstructionSet:
    """Read the instruction files of a repository, or of named paths."""
    base = os.path.realpath(root)
    files: dict[str, InstructionFile] = {}
    for path in paths or [base]:
        if not os.path.exists(path):
            raise NotFoundError(
                f"There is no file or folder {os.fspath(path)}. "
                "Give the path of an instruction file."
            )
        if os.path.realpath(path) == base:
            here = find_instructions(base)
        else:
            # The paths of a folder's files are told from the root, when it lies in there.
            is_folder = os.path.isdir(path)
            places = [each.place for each in find_instructions(path)] if is_folder else [path]
            here = [as_instruction_file(base, place) for place in places]
        for file in here:
            files.setdefault(file.place, file)
    is_whole = not paths or any(os.path.realpath(path) == base for path in paths)
    gathered = InstructionSet(base, is_whole)
    for file in list(files.values()):
        _read_into(gathered, file, files, depth=0)
    return gathered


def _read_into(
    gathered: InstructionSet, file: InstructionFile, files: dict[str, InstructionFile], depth: int
) -> None:
    try:
        text = read_text(file.place)
    except InvalidInputError as error:
        gathered.unreadable.append((file.path, error.message))
        return
    parsed = parse_instructions(text)
    gathered.read.append(Read(file, parsed))
    for reference in parsed.references:
        place, reason = _resolved(gathered.root, file, reference.target)
        if place in files:
            continue
        if reason is None and depth >= _MOST_DEEP:
            reason = "too many files that draw in each other"
        if reason is None and place is not None:
            drawn = as_instruction_file(gathered.root, place)
            files[place] = replace(
                drawn,
                host=file.host,
                folder=drawn.folder or file.folder,
                is_personal=file.is_personal,
            )
            _read_into(gathered, files[place], files, depth=depth + 1)
        elif reason:
            gathered.not_followed.append(
                NotFollowed(file.path, reference.line, reference.target, reason=reason)
            )


def _resolved(root: str, file: InstructionFile, target: str) -> tuple[str | None, str | None]:
    """Where a reference leads, and why it is not followed; neither when it is no path at all."""
    if target.startswith("~"):
        return None, "outside the repository"
    here = os.path.join(os.path.dirname(file.place), target)
    place = next(
        (
            os.path.realpath(each)
            for each in (here, os.path.join(root, target))
            if os.path.isfile(each)
        ),
        None,
    )
    if place is None:
        looks_like_one = target.startswith((".", "/")) or target.lower().endswith(_DRAWN_IN)
        return None, "not there" if looks_like_one else None
    if not Path(place).is_relative_to(root):
        return None, "outside the repository"
    name = Path(place).name.lower()
    if not name.endswith(_DRAWN_IN) or name.startswith("readme"):
        return None, "not a file of instructions"
    return place, None


def read_text(place: str) -> str:
    """Return the text of a file.

    Raises ``InvalidInputError`` for a file that is no text.
    """
    try:
        data = read_regular(place, MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(
            f"It cannot be read: {error.strerror}. Check its permissions."
        ) from None
    if len(data) > MAX_BYTES:
        raise InvalidInputError(
            f"It has more than {MAX_BYTES:,} bytes. Split it, or name the parts to import."
        )
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is None and b"\0" in data:
        raise InvalidInputError("It is not a text. Give a Markdown or text file.")
    return data.decode(encoding or "utf-8", "replace")


_BARE_NAMES = word_set(
    "makefile dockerfile justfile gemfile rakefile procfile cmakelists.txt package.json "
    "tsconfig.json pyproject.toml"
    " cargo.toml go.mod .env .gitignore .editorconfig docker-compose.yml"
)
# Names of products that look like files.
_PRODUCTS = regex(
    r"(node|next|nuxt|vue|react|express|three|d3|discord|alpine|backbone|ember|nest|deno|socket"
    r"|chart|moment|angular|"
    r"knockout|p5|electron|solid|meteor|underscore|require|asp|ado|vb|web3|ethers|polka|koa|bun"
    r"|ml|jquery|handlebars)"
    r"\.(js|ts|net|io)",
    re.IGNORECASE,
)
_WORD = regex(r"[\w@.~*{}\[\],+-]*(?:/[\w@.~*{}\[\],+-]+)*/?(?::\d+(?:-\d+)?)?")
_URL = regex(r"\b\w+://\S+")
_LINE = regex(r":\d+(?:-\d+)?$")
_PATTERN = regex(r"[*?{}\[\]]")
_MOST = 20


class PathMentions(NamedTuple):
    """The paths in a statement, relative to the root."""

    files: tuple[str, ...]
    modules: tuple[str, ...]


def mentions_in(text: str, root: str, folder: str = "") -> PathMentions:
    """Return the files and folders that a text names.

    ``folder`` is where its paths may begin, besides the root.

    A name counts when it is there, or when it can be nothing else but a path.
    """
    files: dict[str, None] = {}
    modules: dict[str, None] = {}
    for number, piece in enumerate(_URL.sub(" ", text).split("`")):
        is_coded = number % 2 == 1
        for word in _WORD.finditer(piece):
            name = _LINE.sub("", word[0]).strip(",.+").removeprefix("./")
            if not 1 < len(name) <= 200 or not any(map(str.isalnum, name)):
                continue
            place = _place(name, root, folder)
            if place is not None and os.path.isdir(os.path.join(root, place)):
                modules.setdefault(place)
            elif place is not None or _is_path(name, is_coded):
                files.setdefault(place or name)
            elif is_coded and name.endswith("/") and not _PATTERN.search(name):
                modules.setdefault(name.rstrip("/"))
    return PathMentions(tuple(files)[:_MOST], tuple(modules)[:_MOST])


def modules_of(globs: Iterable[str], root: str, folder: str = "") -> tuple[str, ...]:
    """Return the folders that globs reach into: ``src/api/**/*.ts`` is about ``src/api``."""
    modules: dict[str, None] = {}
    for glob in globs:
        steps = glob.removeprefix("./").removeprefix("/").split("/")[:-1]
        name = "/".join(takewhile(lambda step: not _PATTERN.search(step), steps))
        if name:
            modules.setdefault(_place(name, root, folder) or name)
    return tuple(modules)


def _place(name: str, root: str, folder: str) -> str | None:
    """The path relative to the root, when it is there."""
    if _PATTERN.search(name) or name.startswith(("~", "@", "-")) or ".." in name.split("/"):
        return None
    if "/" not in name and "." not in name and name.lower() not in _BARE_NAMES:
        return None  # a word that happens to be the name of a folder
    for start in dict.fromkeys((folder, "")):
        place = os.path.normpath(os.path.join(start, name.strip("/"))).replace(os.sep, "/")
        if place not in (".", "") and os.path.exists(os.path.join(root, place)):
            return place
    return None


def _is_path(name: str, is_coded: bool) -> bool:
    """Whether a name that is not there can only be a path."""
    if _PATTERN.search(name) or name.startswith(("@", "~", "-", "/")) or _PRODUCTS.fullmatch(name):
        return False
    if is_coded and re.fullmatch(r"[\w.@+-]+(/[\w.@+-]+)+\.[A-Za-z]\w{0,9}", name):
        return True
    stem, dot, extension = name.rpartition(".")
    if not dot or extension.lower() not in FILE_EXTENSIONS:
        return name.lower() in _BARE_NAMES and is_coded
    return bool(stem.strip("./")) and ("/" in name or is_coded) and stem[-1] not in "/."
