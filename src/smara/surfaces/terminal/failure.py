"""Say why a command failed, and leave with its exit code.

What was typed wrong is answered with the nearest command or option. Loaded only after a failure.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from typing import Any, NoReturn

import click

from smara.core import log
from smara.errors import NotFoundError, SmaraError
from smara.surfaces.cli import output

_IDS = (
    (r"(?<!Decision not found: )\bm-[0-9a-z]{4,}\b", "memory", "memories"),
    (r"\bt-[0-9a-z]{4,}\b", "task", "tasks"),
    (r"\b[0-9a-f]{8}(?![\w-])", "thread", "threads"),
)
"""What ids look like, the noun and the command of each kind."""
_CALLED_BARE: Any = getattr(
    click.exceptions, "NoArgsIsHelpError", ()
)  # click 8.1 has none: it prints the help itself


def fail(error: Exception, status: int, as_json: bool) -> NoReturn:
    """Print an error and exit.

    Args:
        error: What was raised.
        status: The exit code of an error of Smara, or of a bug.
        as_json: True to print an envelope, too.
    """
    code = "bug"
    text = (
        f"Unexpected {type(error).__name__}: {log.redact_text(str(error))}. Please report this bug."
    )
    if isinstance(error, click.Abort):
        code, text, status = "interrupted", "Interrupted; what was stored stays stored.", 130
    elif isinstance(error, _CALLED_BARE):
        code, text, status = "usage", "Missing command. `smara --help` lists them.", 2
        if not as_json:
            click.echo(error.format_message(), err=True)
            sys.exit(status)
    elif isinstance(error, click.ClickException):
        code, text, status = "usage", usage_text(error), 2
    elif isinstance(error, SmaraError):
        code, text = error.code, str(error)
        if isinstance(error, NotFoundError) and (kind := _other_kind(text)):
            text += f" {kind[0]} looks like a {kind[1]}: `smara {kind[2]} show {kind[0]}`."
    if as_json:
        retryable = isinstance(error, SmaraError) and error.is_retryable
        output.envelope(None, error={"code": code, "message": text, "retryable": retryable})
    output.complain(f"smara: {text}")
    sys.exit(status)


def usage_text(error: click.ClickException) -> str:
    """Return one paragraph on a wrong call, with the nearest command."""
    text = " ".join(error.format_message().split())
    if not isinstance(error, click.UsageError) or not error.ctx:
        return text
    called = error.ctx.command_path
    if called == "smara erase" and "unexpected extra" in text:
        name, kind, _ = _other_kind(text) or ("", "", "")
        hint = f"say what it is: `smara erase --{kind} {name}`" if kind else "name it by an option"
        return f"{text.rstrip('.')}. To erase one thing, {hint}. `{called} --help` lists them."
    if text.startswith("No such command") and (near := _nearest(error.ctx, text)):
        text = f"{text.partition('. ')[0].rstrip('.')}. Did you mean `{called} {near}`?"
    return f"{text.rstrip('.')}. `{called} --help` shows how.".replace("?.", "?")


def _other_kind(text: str) -> tuple[str, str, str] | None:
    """Return an id in a text, its kind and its command, if the text speaks of another kind."""
    for pattern, kind, command in _IDS:
        if (found := re.search(pattern, text)) and kind not in text.partition(". ")[0].casefold():
            return found[0], kind, command
    return None


def _nearest(context: click.Context, text: str) -> str | None:
    """Return the command that is most like the quoted one, if any is.

    A singular means its plural: ``memory`` is ``memories``, not ``remember``.
    """
    group, typed = context.command, text.partition("'")[2].partition("'")[0].casefold()
    if not isinstance(group, click.Group) or "You may mean" in text:
        return None
    names = group.list_commands(context)
    plurals = (f"{typed}s", f"{typed[:-1]}ies", typed.removesuffix("s"))
    return next(filter(names.__contains__, plurals), None) or next(
        iter(get_close_matches(typed, names, 1, 0.7)), None
    )
