"""Define `smara demo`: play two sessions of work in a terminal.

The model forgets the first session; the second finds it in memory.
"""

from __future__ import annotations

import time
from typing import Any

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
        yield {
            "status": memory.status(),
            "found": _play(memory, clock, _Narrator(pause, quiet=call.as_json)),
        }


def _play(memory: Memory, clock: FakeClock, tell: _Narrator) -> dict[str, str]:
    """Play both sessions; return what each question found."""
    tell.heading("Session 1 · a Tuesday morning in March")
    for role, text in _FIRST_SESSION:
        memory.messages.add(thread_id="login-feature", role=role, content=text)  # type: ignore[arg-type]  # roles of the table
        tell.spoken(role, text)
        clock.advance(90)
    tell.say(
        "\nEvery message is stored, redacted and indexed. The staging key was pasted; it never "
        "reached the disk:"
    )
    redacted = memory.messages.list(thread_id="login-feature")[-1].raw_content.split(". ")[-1]
    tell.say(one_line(redacted, 240), 4, dim=True)

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
    tell.say(
        f"\n{totals['messages']} messages in {totals['threads']} threads, {totals['tokens']:,} "
        "tokens."
    )
    tell.say("\nThe model's window has moved on. The login session is now shown as one summary:")
    summary = memory.history.window("login-feature")[0].text.split("\n")[0]
    tell.say(one_line(summary, 240), 4, dim=True)

    tell.heading("Session 2 · “Show me the login schema we agreed on.”")
    tell.say("\nThe model no longer knows it. It asks its memory:")
    found: dict[str, str] = {}
    for query, what in _QUESTIONS:
        started = time.perf_counter()
        answer = memory.search(query, limit=1)
        elapsed = (time.perf_counter() - started) * 1000
        found[query] = answer[0].content if answer else ""
        tell.say(f"\nsmara search {query!r}   {what} · {elapsed:.1f} ms", wait=0.3, bold=True)
        tell.say(one_line(answer[0].snippet if answer else "nothing", 160), 4)
    tell.say("\nThe first of them in full, as it was written three weeks ago:")
    tell.say(found["Login schema"], 4)
    tell.say("\nYour turn:")
    tell.say("smara import\nsmara search 'what you remember'", 4)
    return found


class _Narrator:
    """A narrator that prints lines with pauses between them."""

    def __init__(self, pause: float, quiet: bool) -> None:
        self._pause = pause
        self._quiet = quiet

    def say(
        self, text: str, indent: int = 2, wait: float = 1.0, speaker: str = "", **style: Any
    ) -> None:
        """Print a text, wrapped and indented; the speaker comes first."""
        if self._quiet:
            return
        space = " " * indent
        lines = (output.paragraph(line, space, space) for line in text.split("\n"))
        body = click.style("\n".join(lines), **style)
        click.echo(output.encodable(speaker + body.lstrip() if speaker else body))
        time.sleep(self._pause * wait)

    def heading(self, text: str) -> None:
        self.say(f"\n━━ {text} {'━' * max(4, 66 - len(text))}", 0, bold=True, fg="cyan")

    def spoken(self, role: str, text: str) -> None:
        colors = {"user": "green", "assistant": "magenta", "tool": "yellow"}
        lines = [line for line in text.splitlines() if line]
        shown = [*lines[:2], "…"] if len(lines) > 3 else lines
        speaker = click.style(f"  {role:>9}  ", fg=colors[role], bold=True)
        self.say("\n".join(shown), 13, speaker=speaker)
