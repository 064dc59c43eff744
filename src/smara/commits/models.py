"""Define a commit as a record, and the reasons behind lines."""

from __future__ import annotations

from datetime import UTC, datetime

from smara.core.startup.record import dataclass


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the history that leads to the checked-out one.

    Attributes:
        sha: Its full name.
        at: When it was committed, in milliseconds.
        author: The name of its author.
        subject: The first line of its message.
        body: The rest of its message as written.
        reason: The prose of the body, without trailers, code and quotations; empty if there is
            none.
        files: The files it changed, from the top of the repository; of a rename the new name.
        functions: The functions and classes it changed, as far as git could name them.
        renames: Pairs of an old and a new name.
    """

    sha: str
    at: int
    author: str
    subject: str
    body: str = ""
    reason: str = ""
    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        return self.sha

    @property
    def short_id(self) -> str:
        """The first characters of its name, as git shows it."""
        return self.sha[:9]

    @property
    def message(self) -> str:
        """The whole message."""
        return f"{self.subject}\n\n{self.body}" if self.body else self.subject

    @property
    def day(self) -> str:
        """The day of the commit, in UTC."""
        return datetime.fromtimestamp(self.at / 1000, UTC).strftime("%Y-%m-%d")


@dataclass(frozen=True, slots=True)
class LostLine:
    """A line that one commit set and a later one took away."""

    text: str
    number: int
    """Where it stood when it was taken away."""
    by: str
    """The commit that took it away."""
    function: str = ""
    """The function around it, as git names it."""


@dataclass(frozen=True, slots=True)
class LineReason:
    """A commit that states a reason, and its lines in one file.

    Attributes:
        commit: The commit.
        path: The file, by its present name.
        lines: The numbers of its lines that stand today.
        functions: The functions those lines, or the lost ones, belong to.
        lost: Its lines that are gone, in the order of the file.
        undone_by: The commit that took them away and states no reason; ``None`` while what the
            commit set still holds, or if it was replaced on purpose.
        texts: Its lines that stand today, without how they are set in.
        instead: What the other commit put in the place of lost lines, as far as it stands today.
    """

    commit: Commit
    path: str
    lines: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()
    lost: tuple[LostLine, ...] = ()
    undone_by: Commit | None = None
    texts: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitReport:
    """The result of reading the history.

    Attributes:
        added: How many commits are new.
        total: How many are kept now.
        dropped: How many were left out because no branch leads to them any more.
        is_all: False when older commits were beyond the limit.
    """

    added: int = 0
    total: int = 0
    dropped: int = 0
    is_all: bool = True


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """The state of the stored history.

    Attributes:
        total: How many commits are stored.
        behind: How many commits of the checked-out history are not read yet.
        is_all: False when older commits were beyond the limit.
    """

    total: int
    behind: int
    is_all: bool
