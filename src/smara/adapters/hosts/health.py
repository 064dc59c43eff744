"""Check that the hooks of each host are registered and fire.

Registration does not prove that a hook fires; the last event of each host does. Each finding
says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress

from smara.actions.intake import MOST_ATTEMPTS
from smara.actions.models import HostContact, Job
from smara.adapters.host import is_own_hook
from smara.adapters.host_specs import host_named
from smara.adapters.hosts import brief
from smara.adapters.hosts.setup import FoundHost, SetupJournal, find_hosts, program, targets_of
from smara.adapters.hosts.spool import ASIDE, MOST_FILES, UNKNOWN, names
from smara.adapters.jsonc import read_object
from smara.adapters.lines import list_in, mapping_in
from smara.config import Settings, store_exists
from smara.core.host_table import AGENTS
from smara.core.startup.regex import regex
from smara.doctor import Finding
from smara.errors import SmaraError
from smara.memory import open_memory
from smara.texts import age

OLD_EVENT_MS = 2 * 3_600_000
SILENT_HOST_MS = 14 * 86_400_000
_SECONDS_LIMIT = 600
_DRAIN = "Run `smara hook drain`; it says what hinders it."
_VERSION = regex(r"\d+(?:\.\d+)+")


def host_findings(
    settings: Settings, root: str, spool: str, journal: SetupJournal, now_ms: int
) -> list[Finding]:
    """Return the doctor's findings about the agents of this machine."""
    # Of those without hooks nothing is ever heard.
    hosts = [each for each in find_hosts(root, journal) if host_named(each.agent).hooks is not None]
    contacts: list[HostContact] = []
    jobs: list[Job] = []
    if store_exists(settings):
        with (
            suppress(SmaraError),  # what is wrong with the store is said elsewhere
            open_memory(
                settings.db, project=settings.project, check_index=False, embed_in_background=False
            ) as memory,
        ):
            contacts, jobs = memory.internals.intake.heard(), memory.internals.intake.jobs()
    findings = [
        finding for host in hosts for finding in _host_findings(host, contacts, root, now_ms=now_ms)
    ]
    if any(host.is_set_up for host in hosts):
        path = shutil.which("smara")
        findings.append(
            Finding("path", "ok", f"Hooks find {path}.")
            if path
            else Finding(
                "path",
                "warning",
                "`smara` is not on the path, so hooks name its whole path, which an upgrade may "
                "move.",
                advice="Install it where your shell looks: uv tool install smara, or pipx install "
                "smara.",
            )
        )
        findings += _brief_findings(spool, root)
    findings += _spool_findings(spool, now_ms)
    given_up = [job for job in jobs if job.attempts >= MOST_ATTEMPTS]
    findings.append(
        Finding(
            "queue",
            "warning",
            f"{len(given_up):,} jobs were given up; the last said: {given_up[-1].error}",
            advice="Mend the cause; the next event of the session tries again.",
        )
        if given_up
        else Finding("queue", "ok", f"{len(jobs):,} jobs of sessions wait for their time.")
    )
    return findings


def _host_findings(
    host: FoundHost, contacts: Sequence[HostContact], root: str, now_ms: int
) -> Iterator[Finding]:
    check = f"{host.agent} hooks"
    heard = [each for each in contacts if each.agent == host.agent]
    if not host.is_set_up:
        yield Finding(
            check, "ok", f"{host.name} is here and not set up; `smara setup {host.agent}` does it."
        )
        return
    yield _heard_finding(check, host, heard, now_ms=now_ms, root=root)
    if len(host.set_up) > 1:
        yield Finding(
            check,
            "warning",
            "It is set up in this repository and for the user: every event arrives twice.",
            advice=f"Run `smara setup {host.agent} --remove`, or the same with --global.",
        )
    repeated = sum(each.repeat_count for each in heard)
    events = sum(each.event_count for each in heard)
    if len(host.set_up) == 1 and repeated > max(20, events // 5):
        yield Finding(
            check,
            "warning",
            f"{repeated:,} of {events:,} events arrived twice; another registration calls Smara, "
            "too.",
            advice="Look for a plug-in beside the settings, or another agent that reads the same "
            "file.",
        )
    yield from _registration_findings(check, host, root)
    if host.set_up and host.has_plugin:
        yield Finding(
            check,
            "warning",
            "The plug-in and the settings both call Smara: every event arrives twice.",
            advice=f"Run `smara setup {host.agent} --remove`, or take the plug-in away with "
            "/plugin.",
        )
    version = _version(host.program)
    deaf = host.setup.deaf_version
    if version and deaf and tuple(map(int, version.split(".")[:3])) <= deaf:
        yield Finding(
            f"{host.agent} version",
            "warning",
            f"{host.name} {version} does not pass on what hooks say at a start.",
            advice="Upgrade it; until then `smara mcp` still answers it.",
        )
    elif version:
        yield Finding(f"{host.agent} version", "ok", f"{host.name} {version}.")


def _heard_finding(
    check: str, host: FoundHost, heard: Sequence[HostContact], now_ms: int, root: str
) -> Finding:
    if not heard:
        paths = [
            targets_of(host.agent, reach, root, program=program())[0].path for reach in host.set_up
        ]
        untrusted = host.setup.untrusted(host.folder, paths)
        if untrusted:
            return Finding(
                check,
                "warning",
                f"{host.name} skips the hooks of {untrusted} in silence: no user has trusted them.",
                advice=f"Start `{host.agent}` here, trust the folder and its hooks (`/hooks` lists "
                "them), and look again.",
            )
        return Finding(
            check,
            "warning",
            f"{host.name} is set up, but none of its events has arrived yet.",
            advice="Say something to it and look again; `smara hook drain` ingests what waits.",
        )
    last = max(heard, key=lambda each: each.last_at)
    text = (
        f"Last heard {_age(now_ms - last.last_at)} ago ({last.kind}); {len(heard)} kinds of "
        "events so far."
    )
    if now_ms - last.last_at > SILENT_HOST_MS:
        return Finding(
            check,
            "warning",
            text,
            advice=f"If you have used it since, `smara setup {host.agent} --check` tells.",
        )
    return Finding(check, "ok", text)


def _registration_findings(check: str, host: FoundHost, root: str) -> Iterator[Finding]:
    """Find registrations that call a missing program or have a wrong timeout.

    Hosts count in different units, and a wrong one blocks every start.
    """
    for reach in host.set_up:
        for target in targets_of(host.agent, reach, root, program=program()):
            hooks = mapping_in(read_object(target.path).get("hooks"))
            groups = [each for some in hooks.values() for each in list_in(some)]
            inner = [list_in(mapping_in(each).get("hooks")) or [each] for each in groups]
            for entry in [each for some in inner for each in some if is_own_hook(each)]:
                # The program that a registration names.
                line = str(entry.get("command") or entry.get("bash") or "")
                called = (
                    line
                    if isinstance(entry.get("args"), list)
                    else line.split(" hook ")[0].strip("\"' ")
                )
                if called and shutil.which(called) is None:
                    yield Finding(
                        check,
                        "problem",
                        f"{target.path} calls {called}, which is not there.",
                        advice=f"Run `smara setup {host.agent}` again.",
                    )
                    return
                timeout = entry.get("timeout", entry.get("timeoutSec"))
                in_ms = host.setup.is_timeout_in_ms
                if timeout is None:
                    reason = "has no timeout"
                elif (
                    not isinstance(timeout, int | float)
                    or timeout <= 0
                    or (timeout > _SECONDS_LIMIT and not in_ms)
                ):
                    reason = f"has a timeout of {timeout}, which this host takes for seconds"
                elif in_ms and timeout < 1000:
                    reason = f"has a timeout of {timeout}, which this host takes for milliseconds"
                else:
                    continue
                yield Finding(
                    check,
                    "problem",
                    f"A hook in {target.path} {reason}.",
                    advice=f"Run `smara setup {host.agent}` again.",
                )
                return


def _brief_findings(spool: str, root: str) -> Iterator[Finding]:
    """How much a session is told when it starts, and whether hooks can say it without opening the
    store.
    """
    head = brief.head_of(spool, root)
    if head is None or not head["agents"]:
        yield Finding(
            "brief", "ok", "Nothing is prepared for the next session yet: it will ask the store."
        )
        return
    for agent in head["agents"]:
        words = brief.words_of(spool, head, agent)
        if words is None:
            continue
        start = words["start"] or {"tokens": 0, "text": ""}
        hooks = host_named(agent).hooks
        most = hooks.most_characters if hooks is not None else 0
        text = (
            f"A session of {agent} starts with {start['tokens']:,} tokens; "
            f"{len(words['tools']):,} things to say later."
        )
        yield (
            Finding(
                "brief",
                "warning",
                f"{text} The host cuts it at {most:,} characters.",
                advice="Review what is known.",
            )
            if len(start["text"]) > most
            else Finding("brief", "ok", text)
        )


def _spool_findings(spool: str, now_ms: int) -> Iterator[Finding]:
    waiting = names(spool)
    lost = aside = 0
    with suppress(OSError, ValueError), open(os.path.join(spool, "lost"), encoding="ascii") as file:
        lost = sum(int(line.split("\t")[1]) for line in file if "\t" in line)
    with suppress(OSError):
        aside = len(os.listdir(os.path.join(spool, ASIDE)))
    if lost:
        yield Finding(
            "spool",
            "problem",
            f"{lost:,} events were let go: more than {MOST_FILES:,} waited.",
            advice=_DRAIN,
        )
    if aside:
        yield Finding(
            "spool",
            "warning",
            f"{aside:,} events could not be read.",
            advice=f"They lie in {spool}/{ASIDE}.",
        )
    with suppress(OSError):
        path = os.path.join(spool, UNKNOWN)
        if now_ms - os.stat(path).st_mtime * 1_000 < SILENT_HOST_MS:
            with open(path, encoding="utf-8", errors="replace") as file:
                name = file.read()
            yield Finding(
                "hooks",
                "warning",
                f"A hook calls `smara hook {name}`, and no host is called so: its events are kept "
                f"as those of another agent. Known are: {', '.join(AGENTS)}.",
                advice="Correct the name where the hook is registered.",
            )
    oldest = int(waiting[0].partition("-")[0]) // 1_000_000 if waiting else now_ms
    if now_ms - oldest > OLD_EVENT_MS:
        text = f"{len(waiting):,} events wait, the oldest for {_age(now_ms - oldest)}."
        yield Finding("spool", "warning", text, advice=_DRAIN)
    elif not lost and not aside:
        yield Finding(
            "spool",
            "ok",
            "1 event waits." if len(waiting) == 1 else f"{len(waiting):,} events wait.",
        )


def _version(host: str | None) -> str | None:
    if host is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - the program of the host, as the path has it
            [host, "--version"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    version = _VERSION.search(done.stdout)
    return version[0] if version else None


def _age(milliseconds: int) -> str:
    return age(milliseconds / 1000) or "less than a minute"
