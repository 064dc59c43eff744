"""Define every error Smara raises, in one tree.

SmaraError
├── UsageError              the call was wrong; nothing happened
│   ├── InvalidInputError     a value that cannot be accepted, and why
│   ├── NotFoundError         no such thing in this project
│   └── ConflictError         it exists already, and differs
│       ├── TaskClaimedError      another session works on it
│       ├── TaskBlockedError      it waits for unfinished tasks
│       └── DependencyCycleError  tasks would wait for each other for ever
├── ConfigError             the setting or the installation is wrong
│   ├── MissingSettingError
│   └── MissingExtraError
├── DatabaseError           the database could not do it; nothing acknowledged was lost
│   ├── BusyError             another process holds the database
│   ├── LeaseLostError        the lease expired or went to another holder
│   ├── SchemaTooNewError     a newer Smara wrote this database
│   ├── CorruptError          the file or the index is damaged
│   ├── DiskFullError         no room left
│   ├── ReadOnlyError         the file or folder cannot be written
│   ├── DeadlineError         a read took longer than it was allowed to
│   ├── ConnectionLostError   the server or the way to it went away; ask again
│   └── CannotOpenError       the database cannot be opened at all
└── ModelError              the model gave no usable answer; the memory is unchanged
    ├── ModelUnavailableError it timed out, was overloaded or could not be reached
    ├── ModelRefusedError     it will not, and asking again will not help
    ├── BadReplyError         it answered nothing, half, or what cannot be read
    ├── BudgetSpentError      the budget for models is spent for now
    └── ModelAbortedError     the caller took the call back

Each error carries a stable ``code`` (``task_claimed`` of ``TaskClaimedError``), its facts as
attributes, ``is_retryable``, and a message whose last sentence says what to do next.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self


class SmaraError(Exception):
    """The root: ``except SmaraError`` catches everything Smara raises on purpose."""

    code: ClassVar[str] = "error"
    is_retryable: ClassVar[bool] = False

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    @classmethod
    def with_hint(cls, text: str, hint: str, **facts: Any) -> Self:
        """Return an error whose message ends with its hint."""
        return cls(f"{text} {hint}", hint=hint, **facts)

    def __init_subclass__(cls) -> None:
        # A subclass that a program adds keeps the code it inherits: no door has another for it.
        if cls.__module__ == __name__:
            name = cls.__name__.removesuffix("Error")
            letters = [f"_{each.lower()}" if each.isupper() else each for each in name]
            cls.code = "".join(letters).removeprefix("_")

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(name)


class UsageError(SmaraError):
    """The call was wrong; nothing was changed."""


class InvalidInputError(UsageError):
    """A value that cannot be accepted; the message says which and why."""


class NotFoundError(UsageError):
    """There is no such thing in this project."""


class ConflictError(UsageError):
    """The thing exists already and differs from what was given."""


class TaskClaimedError(ConflictError):
    """Another session has claimed the task; ``holder`` says which."""


class TaskBlockedError(ConflictError):
    """The task waits for unfinished tasks; ``blocking`` names them."""


class DependencyCycleError(ConflictError):
    """The dependency would make a cycle; ``path`` is the circle."""


class ConfigError(SmaraError):
    """A setting or the installation is wrong."""


class MissingSettingError(ConfigError):
    """A setting that is needed was not given."""


class MissingExtraError(ConfigError):
    """A feature needs a package that is not installed."""


class DatabaseError(SmaraError):
    """The database could not do it."""


class BusyError(DatabaseError):
    """Another process held the database for longer than the busy timeout."""

    is_retryable = True


class LeaseLostError(DatabaseError):
    """The lease expired or went to another; the write was refused."""


class SchemaTooNewError(DatabaseError):
    """The database was written by a newer version of Smara."""


class CorruptError(DatabaseError):
    """The database file or its search index is damaged."""


class DiskFullError(DatabaseError):
    """There is no room left on the disk."""

    is_retryable = True


class ReadOnlyError(DatabaseError):
    """The database file, or the folder it is in, cannot be written."""


class DeadlineError(DatabaseError):
    """A read took longer than it was allowed to and was stopped."""

    is_retryable = True


class ConnectionLostError(DatabaseError):
    """The connection to PostgreSQL went away in the middle of a call."""

    is_retryable = True


class CannotOpenError(DatabaseError):
    """The database cannot be opened."""


class ModelError(SmaraError):
    """A model gave no usable answer; the memory is unchanged."""


class ModelUnavailableError(ModelError):
    """The model timed out, was overloaded or unreachable; see ``reason``."""

    is_retryable = True


class ModelRefusedError(ModelError):
    """The model will not answer, retrying will not help; see ``reason``."""


class BadReplyError(ModelError):
    """The reply was empty, cut, oversized or unreadable; see ``reason``."""


class BudgetSpentError(ModelError):
    """The model budget is spent; ``opens_at`` says until when."""


class ModelAbortedError(ModelError):
    """The caller took the call back before the model had answered."""
