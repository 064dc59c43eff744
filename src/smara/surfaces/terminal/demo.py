"""Define `smara demo`: play a story of six weeks in a terminal.

What happened is stored through the library, on a clock that is told the time. What the agent hears
today comes from `smara hook`, and what a person sees from the commands themselves: the story
prints it and adds nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from smara.core.events import HostEvent
from smara.environment import exchange
from smara.errors import ConfigError
from smara.memory import Memory, open_memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common
from smara.testing import FakeClock

_DAY = 24 * 3600
_WEEKS = 6
_FEES = '''"""Fees for customers who pay late."""


def late_fee(total_cents, days):
    """Return what a late payment costs, in cents."""
    return total_cents * days // 1000
'''
_OLD, _NEW = "billing/fees.py", "money/late.py"
_KEY = "x7Kd93LmQp" * 3 + "a1B2c3"
_CHAT = (
    ("user", "Customers complain about billing/fees.py: late_fee has no limit."),
    ("assistant", "late_fee grows with every day. Where should it stop?"),
    ("user",
    "Never more than 40 euros per invoice, that is the law. And private customers get 14 days "
    "free first."),
    ("assistant",
    "Agreed: late_fee is capped at 40 euros per invoice, and private customers get 14 free days."),
)  # fmt: skip
_PASTED = f"Now try it on staging; the key is ghp_{_KEY}."
_TRAP = "late_fee counts in cents, never in euros: the ledger adds integers"
_REFUSED = "Exit code 1\npsycopg.OperationalError: connection refused on port 5432"
_FAILING, _HELPING = "pytest tests/billing", "docker compose up -d db"
_CALLS = (
    (_FAILING, "", _REFUSED),
    (_HELPING, "Started", None),
    (_FAILING, "41 passed", None),
)
_PROMPT = "Please simplify the small modules, then run their tests."


@click.command("demo")
@click.option("--fast", is_flag=True, help="Do not pause.")
@common
def demo_command(call: Invocation, fast: bool) -> Reply:
    """Play a short story: what an agent is told, and from where.

    A decision, a command that fails, code that moves, tasks. It takes a minute
    and uses a temporary store, no key and no network.
    """
    if shutil.which("git") is None:
        raise ConfigError("The story is about a repository: install git to see it.")
    pause = 0.0 if fast or call.as_json or not output.is_terminal() else 1.2
    with _shop() as root:
        yield _Story(root, pause, is_quiet=call.as_json).play()


@contextmanager
def _shop() -> Iterator[Path]:
    """Make a small repository and a store beside it; work there until the end."""
    cwd, folder = os.getcwd(), os.path.realpath(tempfile.mkdtemp(prefix="smara-"))
    store = {
        "SMARA_HOME": folder,
        "SMARA_DB": os.path.join(folder, "smara.db"),
        "SMARA_ACTOR": "ann",
        "SMARA_DURABILITY": "normal",
        "SMARA_EMBED_IN_BACKGROUND": "false",
        "SMARA_PATIENCE": "20",  # a hook would rather be silent than late; a story is not
        "CLAUDE_CONFIG_DIR": folder,
    }
    root = Path(folder) / "shop"
    (root / "billing").mkdir(parents=True)
    (root / _OLD).write_text(_FEES, encoding="utf-8")
    before = exchange(dict(store))
    os.chdir(root)
    try:
        yield root
    finally:
        os.chdir(cwd)
        exchange(before)
        shutil.rmtree(folder, ignore_errors=True)


class _Story:
    """A story that prints itself, with pauses between its lines."""

    def __init__(self, root: Path, pause: float, is_quiet: bool) -> None:
        self._root = root
        self._pause = pause
        self._is_quiet = is_quiet
        self._calls = 0
        self._now_ms = int(time.time() * 1000)
        self._clock = FakeClock(self._now_ms - _WEEKS * 7 * _DAY * 1000)

    def play(self) -> dict[str, Any]:
        """Play all of it; return what the agent heard."""
        self._git("init", "-q", ".")
        self._commit("Charge for late payments")
        with open_memory(clock=self._clock) as memory:
            self._past(memory)
        heard = self._today()
        heard["afterTheMove"] = self._move()
        self._work()
        with open_memory() as memory:
            panel = self._panel(memory)
        return {"heard": heard, "panel": panel}

    def _past(self, memory: Memory) -> None:
        self._heading(f"{_WEEKS} weeks ago: a decision in a chat")
        memory.code.index()
        for role, text in _CHAT:
            memory.messages.add(thread_id="cap-the-fee", role=role, content=text)  # type: ignore[arg-type]  # roles of the table
            self._spoken(role, text)
            self._clock.advance(90)
        memory.messages.add(thread_id="on-staging", role="user", content=_PASTED)
        self._spoken("user", _PASTED)
        self._say(
            "\nNo command is typed for this: the agent's hooks report what is said and done. The"
            " key was pasted by mistake. It is the one thing that is not kept:"
        )
        self._run("search", "staging key", "--limit", "1")

        self._heading("Since then: a command fails in two sessions")
        for number in (1, 2):
            session = f"session-{number}"
            for command, printed, error in _CALLS:
                self._clock.advance(30)
                memory.behavior.observe(
                    HostEvent(
                        "claude",
                        "tool_fail" if error else "tool_post",
                        session,
                        self._clock.now_ms(),
                        cwd=str(self._root),
                        tool="Bash",
                        tool_input={"command": command},
                        tool_output=printed,
                        error=error,
                    )
                )
                if number == 1:
                    self._command(command, error or printed)
            memory.behavior.finalize(session)
            self._clock.advance(9 * _DAY)
        memory.decisions.update()

    def _today(self) -> dict[str, str]:
        self._heading("Today: you teach it one thing yourself")
        self._run("remember", _TRAP, "--type", "gotcha", "--file", _OLD)
        self._heading("A new session, and an agent that remembers nothing")
        self._spoken("user", _PROMPT)
        start = self._hook("SessionStart", source="startup")
        self._say("\nIt begins with this, before it has read a file:")
        self._quote(start)
        prompt = self._hook("UserPromptSubmit", prompt=_PROMPT, prompt_id="today-1")
        if not prompt:
            self._say("\nNothing is known about what you asked, so nothing is said to that.")
        self._quote(prompt)
        self._say(f"\nIt is about to change {_OLD}, and is told what you decided:")
        edit = self._hook("PreToolUse", tool_name="Edit", tool_input=self._change(_OLD))
        self._quote(edit)
        self._say(f"\nIt is about to run `{_FAILING}`:")
        bash = self._hook("PreToolUse", tool_name="Bash", tool_input={"command": _FAILING})
        self._quote(bash)
        self._say("\nEach line has its source. It is advice: nothing is refused or changed.")
        return {"start": start, "prompt": prompt, "beforeTheEdit": edit, "beforeTheCommand": bash}

    def _move(self) -> str:
        self._heading("The code moves, and what is known moves with it")
        (self._root / "money").mkdir()
        self._git("mv", _OLD, _NEW)
        self._commit("Put the fees beside the ledger")
        self._say(f"\n$ git mv {_OLD} {_NEW} && git commit", 0, bold=True)
        with open_memory() as memory:
            memory.code.index()
        self._hook("Stop", last_assistant_message="Moved.")
        self._hook("drain")
        self._say("\nAnother session changes the file under its new name:")
        heard = self._hook(
            "PreToolUse", session_id="evening", tool_name="Edit", tool_input=self._change(_NEW)
        )
        self._quote(heard)
        self._say("\nYou can ask, too:")
        self._run("why", _NEW)
        return heard

    def _work(self) -> None:
        self._heading("Tasks that any number of agents and people share")
        self._run("tasks", "add", "Cap late_fee at 40 euros", "-p", "1")
        with open_memory() as memory:
            first = memory.tasks.list()[0].short_id
        self._run("tasks", "add", "Refund what was charged above the cap", "--needs", first)
        self._run("tasks", "ready")
        self._run("tasks", "claim", "--next")

    def _panel(self, memory: Memory) -> dict[str, Any]:
        from smara.surfaces.panel.pages import today

        self._heading("In a browser: `smara ui`")
        facts = today(memory, {})
        status = facts["status"]
        self._say(
            f"\nmemories in force {status['memories']['active']} · to review"
            f" {status['memories']['toReview']} · messages {status['messages']} · tasks in progress"
            f" {status['tasks']['inProgress']} · times told {facts['receipts']['delivered']}"
            "\n\nWhat the next session will be told:"
        )
        self._quote(facts["next"]["text"])
        self._heading("Your turn, in a repository of yours")
        self._say(
            "\nsmara init              set up your agent, read what it kept of past sessions"
            "\nsmara why FILE          everything known about a file"
            "\nsmara review            decide what is true, one key for each"
        )
        return {name: facts[name] for name in ("status", "receipts", "next")}

    def _git(self, *words: str) -> None:
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
        plain = ("-c", "commit.gpgsign=false", "-c", f"core.hooksPath={os.devnull}")
        # The words are those of this module.
        subprocess.run(["git", *who, *plain, *words], check=True, capture_output=True)  # noqa: S603, S607

    def _commit(self, message: str) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "-m", message)

    def _change(self, path: str) -> dict[str, str]:
        return {"file_path": str(self._root / path), "old_string": "1000", "new_string": "100"}

    def _hook(self, event: str, **fields: Any) -> str:
        """Tell Smara an event as Claude Code does; return what the agent hears."""
        self._calls += 1
        event_fields = {
            "session_id": "today",
            "cwd": str(self._root),
            "hook_event_name": event,
            "tool_use_id": f"call-{self._calls}",
            **fields,
        }
        done = subprocess.run(  # noqa: S603 - this Python
            [sys.executable, "-m", "smara", "hook", "claude", event],
            input=json.dumps(event_fields).encode(),
            capture_output=True,
            check=True,
        )
        if not done.stdout:
            return ""
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])

    def _run(self, *words: str) -> None:
        """Show a command and let it print what it prints."""
        shown = (f'"{each}"' if " " in each else each for each in words)
        self._say(f"\n$ smara {' '.join(shown)}", 0, bold=True)
        root = click.get_current_context().find_root().command
        if self._is_quiet:
            words = (*words, "--json")
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            before = sys.stdout
            sys.stdout = nowhere if self._is_quiet else before
            try:
                root.main(list(words), prog_name="smara", standalone_mode=False)
            finally:
                sys.stdout = before
        time.sleep(self._pause)

    def _say(self, text: str, indent: int = 2, speaker: str = "", **style: Any) -> None:
        """Print a text, wrapped and indented; the speaker comes first."""
        if self._is_quiet:
            return
        space = " " * indent
        lines = (output.paragraph(line, space, space) for line in text.split("\n"))
        body = click.style("\n".join(lines), **style)
        click.echo(output.encodable(speaker + body.lstrip() if speaker else body))
        time.sleep(self._pause)

    def _heading(self, text: str) -> None:
        self._say(f"\n━━ {text} {'━' * max(4, 66 - len(text))}", 0, bold=True, fg="cyan")

    def _spoken(self, role: str, text: str) -> None:
        name, color = {"user": ("you", "green"), "assistant": ("agent", "magenta")}[role]
        self._say(text, 9, speaker=click.style(f"  {name:>5}  ", fg=color, bold=True))

    def _command(self, command: str, printed: str) -> None:
        self._say(f"{command}\n{printed.splitlines()[-1].strip()}", 9, speaker="      $  ")

    def _quote(self, text: str) -> None:
        """Print what an agent is told, without the tags around it."""
        for line in text.splitlines():
            if line[:1] != "<":
                bar = click.style("  ┃ ", fg="yellow")
                for each in output.paragraph(line, "    ", "    ").split("\n"):
                    if not self._is_quiet:
                        click.echo(output.encodable(bar + each[4:]))
        time.sleep(self._pause)
