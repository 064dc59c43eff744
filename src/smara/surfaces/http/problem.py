"""Map errors to problem+json and back."""

from __future__ import annotations

from typing import Any

from smara import errors
from smara.errors import (
    BudgetSpentError,
    BusyError,
    ConfigError,
    ConflictError,
    DatabaseError,
    DeadlineError,
    DiskFullError,
    ModelError,
    NotFoundError,
    SmaraError,
    UsageError,
)
from smara.shapes import encodable
from smara.surfaces.http.codec import UnservedTypeError, camel, encode

MEDIA_TYPE = "application/problem+json"
STATUSES: tuple[tuple[type[SmaraError], int], ...] = (
    (NotFoundError, 404),
    (ConflictError, 409),
    (UsageError, 400),
    (ConfigError, 501),
    (BusyError, 503),
    (DeadlineError, 504),
    (DiskFullError, 507),
    (DatabaseError, 503),
    (BudgetSpentError, 503),
    (ModelError, 502),
)
TITLES = {
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 409: "Conflict", 413: "Content Too Large",
    415: "Unsupported Media Type", 421: "Misdirected Request", 422: "Unprocessable Content",
    429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented",
    502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
    507: "Insufficient Storage",
}  # fmt: skip
RETRY_AFTER_SECONDS = 1


class Refusal(Exception):
    """A request that the door itself refuses."""

    def __init__(self, status: int, code: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def status_of(error: SmaraError) -> int:
    """Return the status of an error."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def problem(status: int, code: str, detail: str, **facts: Any) -> dict[str, Any]:
    """Return the body of a problem."""
    return {
        "type": f"urn:smara:problem:{code}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "code": code,
        "detail": encodable(detail),
        "isRetryable": status in (429, 503, 504),
        **facts,
    }


def problem_of(error: BaseException) -> dict[str, Any]:
    """Return the body for anything that a request raised.

    What is not ours is a bug: it is told without its words, which may hold anything.
    """
    if isinstance(error, Refusal):
        return problem(error.status, error.code, error.detail)
    if not isinstance(error, SmaraError):
        return problem(500, "bug", "Something went wrong here. The log of the server has more.")
    body = problem(status_of(error), error.code, error.message)
    body["isRetryable"] = error.is_retryable
    facts = {}
    for name, value in error.facts.items():
        try:
            facts[camel(name)] = encodable(encode(value))
        except UnservedTypeError:
            continue
    return body | ({"facts": facts} if facts else {})


def _kinds(kind: type[SmaraError] = SmaraError) -> dict[str, type[SmaraError]]:
    found = {kind.code: kind}
    for each in kind.__subclasses__():
        found |= _kinds(each)
    return found


def error_of(status: int, body: Any) -> SmaraError:
    """Return the error that a problem tells of."""
    body = body if isinstance(body, dict) else {}
    code, detail = body.get("code"), body.get("detail") or f"The server answered {status}."
    kinds = _kinds()
    kind = kinds.get(str(code))
    if kind is None:
        by_status = {400: errors.InvalidInputError, 401: errors.ConfigError, 429: errors.BusyError}
        kind = by_status.get(status, errors.UsageError if status < 500 else errors.SmaraError)
    facts = body.get("facts")
    named = {_snake(name): each for name, each in facts.items()} if isinstance(facts, dict) else {}
    named.pop("message", None)
    return kind(str(detail), **named)


def _snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)
