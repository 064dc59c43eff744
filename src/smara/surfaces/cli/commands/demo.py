"""Define `smara demo`: play two sessions of work in a terminal.

The model forgets the first session; the second finds it in memory.
"""

from __future__ import annotations

import time

import click

from smara.core.extract import one_line
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common
from smara.testing import FakeClock, open_temporary

_TUESDAY = 1_741_079_400_000  # 2025-03-04 09:10 UTC
_THREE_WEEKS = 21 * 24 * 3600

_SCHEMA = """Here is the schema, in `src/schemas/auth.ts`:

```ts
import { z } from "zod"

export const LoginSchema = z.object({
  email: z.string().email(),
  password: z.string().min(12),
  otp: z.string().length(6).optional(),
})
```

`authenticateUser(email, password)` in `src/auth/index.ts` parses its input with it."""

_KEY = "x7Kd93LmQp" * 3 + "a1B2c3."
_FIRST_SESSION = (
    ("user",
    "Implement the login with Zod. Passwords have at least 12 characters; a one-time code is "
    "optional."),
    ("assistant", _SCHEMA),
    ("tool", "$ npm test -- auth\n42 passing (3s)"),
    ("assistant",
    "All 42 tests pass. Refresh tokens live in the table refresh_tokens; POST /api/login gives "
    "one."),
    ("user",
    "Good. Use HTTP-only cookies for the tokens, never localStorage. The staging key is ghp_" + _KEY),  # noqa: E501
)  # fmt: skip

_SMALL_TALK = (
    "Rename the button on the settings page.", "Why does the linter complain about unused imports?",
    "Bump the version to 2.4.1 and write the changelog.",
    "The date picker is off by one day in Safari.",
    "Make the sidebar collapse below 900 pixels.",
    "Add a retry with backoff to the webhook sender.",
    "Translate the error messages to French.",
    "Profile the dashboard query, it takes four seconds.",
)  # fmt: skip

_QUESTIONS = (
    ("Login schema", "the words of the question"),
    ("LoginSchema", "the exact name"),
    ("refresh tokens", "finds refresh_tokens"),
    ("enticateUs", "a piece of a name"),
    ("cookies or localStorage for the tokens?", "a question"),
)


@click.command("demo")
@click.option("--fast", is_flag=True, help="Do not pause.")
@common
def demo_command(call: Invocation, fast: bool) -> Reply:
    """Play a short story: the model forgets, Smara finds it again.

    It takes a minute and uses a temporary store, no key and no network.
    """
    pause = 0.0 if fast or not output.is_terminal() else 0.7
    clock = FakeClock(_TUESDAY)
    with open_temporary(clock=clock) as memory:
        found = _play(memory, clock, _Narrator(pause, quiet=call.as_json))
        yield {"status": memory.status(), "found": found}


def _play(memory: Memory, clock: FakeClock, tell: _Narrator) -> dict[str, str]:
    """Play both sessions; return what each question found."""
    tell.heading("Session 1 · a Tuesday morning in March")
    for role, text in _FIRST_SESSION:
        memory.messages.add(thread_id="login-feature", role=role, content=text)  # type: ignore[arg-type]  # roles of the table
        tell.spoken(role, text)
        clock.advance(90)
    tell.note(
        "Every message is stored, redacted and indexed. The staging key was pasted; it never "
        "reached the disk:"
    )
    tell.quoted(memory.messages.list(thread_id="login-feature")[-1].raw_content.split(". ")[-1])

    tell.heading("Three weeks go by")
    for day in range(21):
        for number, words in enumerate(_SMALL_TALK):
            memory.messages.add(thread_id=f"day-{day}", role="user", content=words)
            memory.messages.add(
                thread_id=f"day-{day}",
                role="assistant",
                content=f"Done: {words} (change {day * 8 + number})",
            )
        clock.advance(_THREE_WEEKS / 21)
    memory.compactions.compact("login-feature")
    totals = memory.threads.totals()
    tell.note(
        f"{totals['messages']} messages in {totals['threads']} threads, {totals['tokens']:,} "
        "tokens."
    )
    tell.note("The model's window has moved on. The login session is now shown as one summary:")
    tell.quoted(memory.history.window("login-feature")[0].text.split("\n")[0])

    tell.heading("Session 2 · “Show me the login schema we agreed on.”")
    tell.note("The model no longer knows it. It asks its memory:")
    found: dict[str, str] = {}
    for query, what in _QUESTIONS:
        started = time.perf_counter()
        answer = memory.search(query, limit=1)
        elapsed = (time.perf_counter() - started) * 1000
        found[query] = answer[0].content if answer else ""
        tell.asked(query, what, elapsed, answer[0].snippet if answer else "nothing")
    tell.note("The first of them in full, as it was written three weeks ago:")
    tell.code(found["Login schema"])
    tell.note("Your turn:")
    tell.code("smara import\nsmara search 'what you remember'")
    return found


class _Narrator:
    """A narrator that prints lines with pauses between them."""

    def __init__(self, pause: float, quiet: bool) -> None:
        self._pause = pause
        self._quiet = quiet

    def _say(self, text: str, wait: float = 1.0) -> None:
        if self._quiet:
            return
        click.echo(output.encodable(text))
        if self._pause:
            time.sleep(self._pause * wait)

    def heading(self, text: str) -> None:
        self._say(
            "\n"
            + click.style(f"━━ {text} ", bold=True, fg="cyan")
            + click.style("━" * max(4, 66 - len(text)), fg="cyan")
        )

    def note(self, text: str) -> None:
        self._say("\n" + _set(text, 2))

    def spoken(self, role: str, text: str) -> None:
        colors = {"user": "green", "assistant": "magenta", "tool": "yellow"}
        lines = [line for line in text.splitlines() if line]
        shown = [*lines[:2], "…"] if len(lines) > 3 else lines
        self._say(
            click.style(f"  {role:>9}  ", fg=colors[role], bold=True)
            + "\n".join(_set(line, 13) for line in shown).lstrip()
        )

    def asked(self, query: str, what: str, elapsed: float, snippet: str) -> None:
        self._say(
            click.style(f"\n  smara search {query!r}", bold=True)
            + click.style(f"   {what} · {elapsed:.1f} ms", dim=True),
            0.3,
        )
        self._say(_set(one_line(snippet, 160), 4))

    def quoted(self, text: str) -> None:
        self._say(click.style(_set(one_line(text, 240), 4), dim=True))

    def code(self, text: str) -> None:
        self._say("\n".join("    " + line for line in text.splitlines()))


def _set(text: str, indent: int) -> str:
    """Return a paragraph wrapped at the width of the terminal, indented."""
    return output.paragraph(text, " " * indent, " " * indent)
