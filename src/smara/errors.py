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

Each error carries a stable ``code``, its facts as attributes, ``is_retryable``, and a
message whose last sentence says what to do next.
"""

from __future__ import annotations

from typing import Any, ClassVar


class SmaraError(Exception):
    """The root: ``except SmaraError`` catches everything Smara raises on purpose."""

    code: ClassVar[str] = "error"
    is_retryable: ClassVar[bool] = False

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(name)


class UsageError(SmaraError):
    """The call was wrong; nothing was changed."""

    code = "usage"


class InvalidInputError(UsageError):
    """A value that cannot be accepted; the message says which and why."""

    code = "invalid_input"


class NotFoundError(UsageError):
    """There is no such thing in this project."""

    code = "not_found"


class ConflictError(UsageError):
    """The thing exists already and differs from what was given."""

    code = "conflict"


class TaskClaimedError(ConflictError):
    """Another session has claimed the task; ``holder`` says which."""

    code = "task_claimed"


class TaskBlockedError(ConflictError):
    """The task waits for unfinished tasks; ``blocking`` names them."""

    code = "task_blocked"


class DependencyCycleError(ConflictError):
    """The dependency would make a cycle; ``path`` is the circle."""

    code = "dependency_cycle"


class ConfigError(SmaraError):
    """A setting or the installation is wrong."""

    code = "config"


class MissingSettingError(ConfigError):
    """A setting that is needed was not given."""

    code = "missing_setting"


class MissingExtraError(ConfigError):
    """A feature needs a package that is not installed."""

    code = "missing_extra"


class DatabaseError(SmaraError):
    """The database could not do it."""

    code = "database"


class BusyError(DatabaseError):
    """Another process held the database for longer than the busy timeout."""

    code = "busy"
    is_retryable = True


class LeaseLostError(DatabaseError):
    """The lease expired or went to another; the write was refused."""

    code = "lease_lost"


class SchemaTooNewError(DatabaseError):
    """The database was written by a newer version of Smara."""

    code = "schema_too_new"


class CorruptError(DatabaseError):
    """The database file or its search index is damaged."""

    code = "corrupt"


class DiskFullError(DatabaseError):
    """There is no room left on the disk."""

    code = "disk_full"
    is_retryable = True


class ReadOnlyError(DatabaseError):
    """The database file, or the folder it is in, cannot be written."""

    code = "read_only"


class DeadlineError(DatabaseError):
    """A read took longer than it was allowed to and was stopped."""

    code = "deadline"
    is_retryable = True


class ConnectionLostError(DatabaseError):
    """The connection to PostgreSQL went away in the middle of a call."""

    code = "connection_lost"
    is_retryable = True


class CannotOpenError(DatabaseError):
    """The database cannot be opened."""

    code = "cannot_open"


class ModelError(SmaraError):
    """A model gave no usable answer; the memory is unchanged."""

    code = "model"


class ModelUnavailableError(ModelError):
    """The model timed out, was overloaded or unreachable; see ``reason``."""

    code = "model_unavailable"
    is_retryable = True


class ModelRefusedError(ModelError):
    """The model will not answer, retrying will not help; see ``reason``."""

    code = "model_refused"


class BadReplyError(ModelError):
    """The reply was empty, cut, oversized or unreadable; see ``reason``."""

    code = "bad_reply"


class BudgetSpentError(ModelError):
    """The model budget is spent; ``opens_at`` says until when."""

    code = "budget_spent"


class ModelAbortedError(ModelError):
    """The caller took the call back before the model had answered."""

    code = "model_aborted"
