"""Play an agent host: past sessions on disk, `smara init`, then its hooks with real payloads.

Everything goes through the command that users install, each call in a process of its own that is
forked from one with the package loaded: what a hook says and keeps is the same, without the time
that Python needs to start. Which hooks run for an event is read from the file that `smara init`
wrote for the host, matchers included.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

MOMENTS = ("start", "message", "open", "edit", "command")
_GIT = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "gc.auto=0")
_PATIENT = ("SMARA_PATIENCE", "SMARA_SEARCH_DEADLINE_SECONDS", "SMARA_EMBED_QUERY_SECONDS")


@dataclass(frozen=True, slots=True)
class Session:
    """A session of the past: its turns have ``role`` (user, assistant, tool) and ``text``."""

    id: str
    at: datetime
    turns: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Told:
    """The text that one session was given, by moment."""

    texts: dict[str, str] = field(default_factory=lambda: dict.fromkeys(MOMENTS, ""))

    @property
    def text(self) -> str:
        """All of it, in the order of the moments."""
        return "\n".join(filter(None, self.texts.values()))

    @property
    def repeated(self) -> list[str]:
        """The long lines that were told at two moments, without those of the frame."""
        lines: list[str] = []
        for text in self.texts.values():
            lines += {line.strip() for line in text.splitlines() if len(line) > 60}
        frame = "What earlier sessions"
        return [each for each in set(lines) if lines.count(each) > 1 and frame not in each]

    def tokens(self, moment: str = "") -> int:
        """Count the tokens of one moment, or of all."""
        return count_tokens(self.texts[moment] if moment else self.text)


class Host:
    """A user's home and repository, with Smara set up in it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "repository", folder / "home"
        for path in (self.root, self.home / ".claude"):
            path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", ".")

    def git(self, *arguments: str, at: datetime | None = None) -> str:
        """Run git in the repository; ``at`` dates a commit."""
        stamp = f"{at or datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), stamp)
        done = subprocess.run(  # noqa: S603
            [*_GIT, *arguments],
            cwd=self.root,
            env={**os.environ, "HOME": str(self.home), **dates},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def commit(self, message: str, at: datetime, files: Mapping[str, str]) -> None:
        """Write files and commit them."""
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, at=at)

    def write(self, files: Mapping[str, str]) -> None:
        """Write files of the repository."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def remember(self, sessions: Sequence[Session]) -> None:
        """Put transcripts where the host keeps those of this repository."""
        for session in sessions:
            lines = (json.dumps(record) + "\n" for record in transcript(session, str(self.root)))
            path = self._transcript(session.id)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(lines), encoding="utf-8")

    def _transcript(self, session: str) -> Path:
        folder = re.sub(r"[^A-Za-z0-9]", "-", str(self.root))
        return self.home / ".claude" / "projects" / folder / f"{session}.jsonl"

    def live(self, session: Session) -> None:
        """Play a whole session today, with its transcript and all its hooks."""
        self.remember([session])
        self.fire("SessionStart", session.id, source="startup")
        for number, turn in enumerate(session.turns):
            if turn["role"] == "user":
                self.fire(
                    "UserPromptSubmit", session.id, prompt=turn["text"], prompt_id=str(number)
                )
            elif turn["role"] == "assistant":
                self.fire("Stop", session.id, last_assistant_message=turn["text"])
        self.fire("SessionEnd", session.id, reason="prompt_input_exit")
        self.smara("hook", "claude", "drain")

    def set_up(self) -> None:
        """Do what a user does: `smara init`; the host then runs its background call."""
        self.smara("init", "--yes")
        self.smara("hook", "claude", "drain")

    def smara(self, *arguments: str, stdin: bytes = b"", is_checked: bool = True) -> str:
        """Run the command in the repository and return what it prints."""
        code, out, error = _pool().run(arguments, stdin, cwd=self.root, environment=self._variables)
        if code and is_checked:
            raise RuntimeError(f"smara {' '.join(arguments)} left with {code}: {error}")
        return out if not code else ""

    @property
    def _variables(self) -> dict[str, str]:
        # A busy machine must not change the figures: what is given up after a moment is given time.
        return {
            "HOME": str(self.home),
            "SMARA_HOME": str(self.home / "smara"),
            "SMARA_DURABILITY": "normal",
            **dict.fromkeys(_PATIENT, "100"),
        }

    def copy_of_store(self, folder: Path) -> Host:
        """Return the same repository with a copy of the store, for one session."""
        other = object.__new__(Host)
        other.root, other.home = self.root, folder / "home"
        shutil.rmtree(other.home, ignore_errors=True)
        shutil.copytree(self.home / "smara", other.home / "smara")
        return other

    def session(
        self,
        name: str,
        *prompts: str,
        opens: Sequence[str] = (),
        edits: Mapping[str, str] = {},
        runs: Sequence[str] = (),
    ) -> Told:
        """Play a session up to its first edits and commands.

        ``edits`` names what is replaced in each file.
        """
        told = Told()
        told.texts["start"] = self.fire("SessionStart", name, source="startup")
        answers = [self.fire("UserPromptSubmit", name, prompt=prompt) for prompt in prompts]
        told.texts["message"] = "\n".join(filter(None, answers))
        for number, path in enumerate(opens):
            shown = self._content(path)
            told.texts["open"] += self.fire(
                "PostToolUse",
                name,
                tool_name="Read",
                tool_use_id=f"{name}-read-{number}",
                tool_input={"file_path": str(self.root / path)},
                tool_response={"type": "text", "file": {"filePath": path, "content": shown}},
            )
        for number, (path, old) in enumerate(edits.items()):
            change = {"file_path": str(self.root / path)}
            if (self.root / path).exists():
                change |= {"old_string": old, "new_string": old + "    # changed\n"}
            else:
                change["content"] = "# new\n"
            told.texts["edit"] += self.fire(
                "PreToolUse",
                name,
                tool_name="Edit" if "old_string" in change else "Write",
                tool_use_id=f"{name}-edit-{number}",
                tool_input=change,
            )
        for number, command in enumerate(runs):
            told.texts["command"] += self.fire(
                "PreToolUse",
                name,
                tool_name="Bash",
                tool_use_id=f"{name}-run-{number}",
                tool_input={"command": command},
            )
        return told

    def _content(self, path: str) -> str:
        with suppress(OSError):
            return (self.root / path).read_text(encoding="utf-8")
        return ""

    def fire(self, event: str, session: str, **fields: Any) -> str:
        """Run the hooks that are set up for an event, and return the text they add."""
        payload = {
            "session_id": session,
            "cwd": str(self.root),
            "hook_event_name": event,
            "transcript_path": str(self._transcript(session)),
            **fields,
        }
        texts = []
        for command in self._hooks(event, str(fields.get("tool_name", ""))):
            out = self.smara(*command, stdin=json.dumps(payload).encode())
            texts.append("\n".join(_strings(json.loads(out))) if out.strip() else "")
        return "\n".join(filter(None, texts))

    def _hooks(self, event: str, tool: str) -> list[list[str]]:
        path = self.root / ".claude" / "settings.local.json"
        groups = json.loads(path.read_text(encoding="utf-8"))["hooks"].get(event, [])
        return [
            hook["command"].split()[1:]
            for group in groups
            if re.fullmatch(group.get("matcher") or ".*", tool)
            for hook in group["hooks"]
            if not hook.get("async")
        ]


def _strings(value: Any, key: str = "") -> list[str]:
    """Return what a reply tells: its texts, without the name of the event."""
    if isinstance(value, str):
        return [] if key == "hookEventName" else [value]
    if isinstance(value, dict):
        return [text for name, each in value.items() for text in _strings(each, name)]
    return [text for each in value for text in _strings(each)] if isinstance(value, list) else []


def transcript(session: Session, cwd: str) -> list[dict[str, Any]]:
    """Write a session as Claude Code does; a turn of a tool is a call and its result.

    A turn may name ``tool`` and ``input``, or begin with the command after a ``$``, or have
    ``content``: the blocks as they are.
    """
    records: list[dict[str, Any]] = []
    for number, turn in enumerate(session.turns):
        at = session.at + timedelta(seconds=40 * number)
        shared = {
            "sessionId": session.id,
            "cwd": cwd,
            "version": "2.1.39",
            "gitBranch": "main",
            "isSidechain": False,
            "userType": "external",
            "timestamp": f"{at:%Y-%m-%dT%H:%M:%S.000Z}",
        }

        def add(role: str, content: Any, shared: dict[str, Any] = shared) -> None:
            key = f"{session.id}-{len(records)}"
            message: dict[str, Any] = {"role": role, "content": content}
            if role == "assistant":
                message |= {"id": f"msg-{key}", "type": "message", "model": "claude"}
            parent = records[-1]["uuid"] if records else None
            records.append(
                {**shared, "type": role, "uuid": key, "parentUuid": parent, "message": message}
            )

        text = turn.get("text", "")
        if turn["role"] == "tool":
            call = f"toolu-{session.id}-{number}"
            line = text.partition("\n")[0]
            command = line[2:] if line.startswith("$ ") else "make"
            name, given = turn.get("tool", "Bash"), turn.get("input", {"command": command})
            add("assistant", [{"type": "tool_use", "id": call, "name": name, "input": given}])
            add("user", [{"type": "tool_result", "tool_use_id": call, "content": text}])
        elif turn["role"] == "assistant":
            add("assistant", [{"type": "text", "text": text}])
        else:
            add("user", turn.get("content", text))
    return records


@cache
def _encoder() -> Any:
    import splintr

    return splintr.Tokenizer.from_pretrained("o200k_base")


def count_tokens(text: str) -> int:
    """Count the tokens of a text."""
    return len(_encoder().encode(text)) if text else 0


# The process that calls are forked from.


class _Pool:
    """A parent of calls for each thread that makes some."""

    def __init__(self) -> None:
        self._own = threading.local()

    def run(
        self,
        arguments: Sequence[str],
        stdin: bytes,
        *,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> tuple[int, str, str]:
        """Return the exit code of a call, and what it wrote to both streams."""
        parent = getattr(self._own, "parent", None)
        if parent is None:
            parent = self._own.parent = subprocess.Popen(
                [sys.executable, "-m", "evals.host"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[1],
            )
            atexit.register(_end, parent)
        request = {
            "arguments": list(arguments),
            "stdin": stdin.decode(),
            "cwd": str(cwd),
            "environment": dict(environment),
        }
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(json.dumps(request) + "\n")
        parent.stdin.flush()
        code, out, error = json.loads(parent.stdout.readline())
        return code, out, error


def _end(parent: subprocess.Popen[str]) -> None:
    if parent.stdin is not None:
        parent.stdin.close()
    parent.wait()
    if parent.stdout is not None:
        parent.stdout.close()


@cache
def _pool() -> _Pool:
    return _Pool()


def _serve() -> None:
    """Answer requests: fork, become the call, and hand back what it wrote."""
    from importlib import import_module
    from importlib.metadata import entry_points
    from pkgutil import walk_packages

    import smara

    (door,) = entry_points(group="console_scripts", name="smara")
    command = door.load()
    for each in walk_packages(smara.__path__, "smara."):
        with suppress(ImportError):  # what an extra brings
            if not each.name.endswith("__main__"):
                import_module(each.name)
    gc.freeze()  # or each child would copy what its collector looks at
    for line in sys.stdin:
        request = json.loads(line)
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as error:
            given.write(request["stdin"].encode())
            given.flush()
            given.seek(0)
            child = os.fork()
            if not child:
                _become(command, request, [given.fileno(), out.fileno(), error.fileno()])
            _, status = os.waitpid(child, 0)
            texts = []
            for file in (out, error):
                file.seek(0)
                texts.append(file.read().decode())
        print(json.dumps([os.waitstatus_to_exitcode(status), *texts]), flush=True)


def _become(command: Any, request: dict[str, Any], files: Sequence[int]) -> None:
    """Run the call in this process, which then ends."""
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, mode), encoding="utf-8")
            for number, mode in enumerate(("rb", "wb", "wb"))
        )
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for name in [name for name in os.environ if name.startswith("SMARA_")]:
            del os.environ[name]
        os.environ.update(request["environment"])
        os.chdir(request["cwd"])
        sys.argv = ["smara", *request["arguments"]]
        command()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - the parent is told of it
        import traceback

        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # as Python does at its end
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ago(days: float) -> datetime:
    """Return a time in the past, at noon of its day."""
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    return noon - timedelta(days=days)


if __name__ == "__main__":
    _serve()
