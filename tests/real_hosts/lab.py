"""A place to run agents in: an empty home, a small repository, a store, and all that hooks were
given and said.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DEADLINE_SECONDS = 240
PROGRAMS = os.environ.get("SMARA_REAL_HOSTS", "")
"""Where the agents are; read once, since tests run without any variable of ours."""
_RUN = """\
#!/bin/sh
[ "$1" = --fast ] && echo ok && exit 0
echo "ModuleNotFoundError: No module named shop" >&2
exit 3
"""
# Called in the place of `smara`: what a hook is given and says is kept, and passed on as it is.
_RECORDER = """\
#!{python}
import os, subprocess, sys, time
words = sys.argv[1:]
if words[:1] != ["hook"] or len(words) != 3 or words[2].startswith("-"):
    os.execv({smara!r}, ["smara", *words])
given = sys.stdin.buffer.read()
done = subprocess.run([{smara!r}, *words], input=given, capture_output=True)
name = os.path.join({folder!r}, f"{{time.time_ns()}}-{{words[-1]}}")
for ending, content in (("in", given), ("out", done.stdout), ("err", done.stderr), ("rc", b"%d" % done.returncode)):
    with open(f"{{name}}.{{ending}}", "wb") as file:
        file.write(content)
sys.stdout.buffer.write(done.stdout)
sys.stderr.buffer.write(done.stderr)
sys.exit(done.returncode)
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class Heard:
    """What a hook was given, and what it did."""

    event: str
    payload: dict[str, Any]
    said: str
    complaint: str
    code: int


class Lab:
    """One user with one repository."""

    def __init__(self, folder: Path) -> None:
        self.home, self.repository = folder / "home", folder / "shop"
        self._bin, self._heard = folder / "bin", folder / "heard"
        for each in (self.home, self._bin, self._heard, self.repository / "src"):
            each.mkdir(parents=True)
        beside = os.path.join(os.path.dirname(sys.executable), "smara")
        program = self._bin / "smara"
        program.write_text(
            _RECORDER.format(python=sys.executable, smara=beside, folder=str(self._heard))
        )
        program.chmod(0o755)
        self._make_repository()

    def _make_repository(self) -> None:
        (self.repository / "src" / "cart.py").write_text(
            "def total(prices):\n    return sum(prices)\n"
        )
        script = self.repository / "run.sh"
        script.write_text(_RUN)
        script.chmod(0o755)
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "The shop"]):
            subprocess.run(["git", *words], cwd=self.repository, check=True)

    def environment(self, **more: str) -> dict[str, str]:
        """Nothing of ours but what is named: no key, no setting, no running agent is inherited."""
        node = shutil.which("node")
        places = [str(self._bin), PROGRAMS, os.path.dirname(node) if node else "", os.defpath]
        return {
            "PATH": os.pathsep.join(filter(None, places)),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "SMARA_HOME": str(self.home / "smara"),
            "IS_SANDBOX": "1",
            **more,
        }

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the repository; it must succeed."""
        done = self._call(*words, **more)
        assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
        return done

    def _call(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.repository,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_SECONDS,
            stdin=subprocess.DEVNULL,
        )

    def smara(self, *words: str) -> Any:
        """What a command of ours answers."""
        return json.loads(self.run("smara", *words, "--json").stdout)["data"]

    def drain(self) -> None:
        """Take in what waits; a drain that a host has begun is waited for."""
        for _ in range(DEADLINE_SECONDS):
            if self._call("smara", "hook", "drain").returncode == 0:
                return
            threading.Event().wait(1)
        pytest.fail("The spool is drained by somebody who does not end.")

    def heard(self) -> list[Heard]:
        """What hooks were given so far, without the drains, which a host that leaves may cut
        off.
        """
        found = []
        for path in sorted(self._heard.glob("*.rc")):
            event = path.stem.partition("-")[2]
            parts = {
                ending: path.with_suffix(f".{ending}").read_text()
                for ending in ("in", "out", "err", "rc")
            }
            if event != "drain":
                payload = json.loads(parts["in"])
                found.append(
                    Heard(
                        event, payload, parts["out"], complaint=parts["err"], code=int(parts["rc"])
                    )
                )
        return found


def need(program: str) -> None:
    """Leave the tests of a program out that is not installed."""
    if shutil.which(program, path=PROGRAMS) is None:
        pytest.skip(f"{program} is not in SMARA_REAL_HOSTS", allow_module_level=True)
