"""Detect a failed command and the fix that worked (signal 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smara.actions.commands import is_of_the_moment, is_same_program
from smara.actions.failures import is_option, is_passing
from smara.actions.paths import modules_of
from smara.behavior.models import MemoryDraft, Seen, Signal, SignalFinding, non_empty
from smara.behavior.scratchpad import Pad, code

SIGNAL = Signal(
    3,
    "error_retry",
    0.90,
    relevance=0.80,
    false_positives=0.20,
    targets=("error_pattern", "gotcha"),
    least_sessions=2,
)
_OFTEN = 2
"""Failing so often in one session, before something worked, counts as having failed in two."""


def detect(pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for pad in pads:
        for print_, entry in pad.errors:
            data = non_empty(
                fingerprint=print_,
                times=entry.count,
                last_step=entry.resolved_step or entry.last_step,
                tool=entry.tool,
                cmd=entry.command,
                line=entry.line,
                how=entry.how,
                fix=entry.fix,
                files=entry.files,
                env=entry.is_environment,
            )
            yield SignalFinding(
                "error_retry",
                print_,
                f"{entry.command}: {entry.line}"[:160],
                step=entry.first_step,
                data=data,
                is_proven=bool(entry.how),
                counts_as=2 if entry.count >= _OFTEN and entry.how else 1,
            )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    data = finding.data
    how, command, line, fix = (
        data.get("how"),
        str(data["cmd"]),
        str(data["line"]),
        str(data.get("fix", "")),
    )
    if how == "path":
        return MemoryDraft(
            "gotcha",
            f"There is no {code(command)}; the file is {code(fix)}.",
            (f"{command}: {line}", f"found: {fix}"),
            files=(fix,),
            modules=modules_of((fix,)),
            data={"symptom": f"reading {command} fails", "workaround": f"read {fix}"},
        )
    if how == "edit":
        return _mended(finding, seen)
    if how not in ("command", "first"):
        return None
    command, line, fix = (
        _constant([str(each.get(name, "")) for each in seen.history if each.get("how") == how])
        for name in ("cmd", "line", "fix")
    )
    if not is_lasting(command, line, fix):
        return None
    worked = f"running {code(fix)} first" if how == "first" else code(fix)
    content = f"Running {code(command)} failed with {code(line)}; what worked: {worked}."
    times = sum(int(each.get("times", 1)) for each in seen.history)
    return MemoryDraft(
        "error_pattern",
        content,
        (f"$ {command}\n{line}", f"$ {fix}\n(worked)"),
        files=(),
        modules=(),
        data={
            "error": line,
            "fix": fix,
            "tool": str(data["tool"]),
            "command": command,
            "occurrences": times,
            "fingerprint": str(data["fingerprint"]),
        },
    )


def is_lasting(command: str, line: str, fix: str) -> bool:
    """Return True if an error and its fix will last."""
    if is_of_the_moment(command) or is_of_the_moment(fix) or is_passing(line):
        return False
    # Whoever takes another program has not learned which options this one has.
    return not is_option(line) or is_same_program(command, fix)


def _constant(texts: Sequence[str]) -> str:
    """What is the same in all of some texts; a word that changes, such as the name of a branch,
    becomes an ellipsis.

    >>> _constant(["git push -u origin fix-1", "git push -u origin fix-2"])
    'git push -u origin …'
    """
    words = [text.split(" ") for text in texts]
    if len({len(each) for each in words}) != 1:
        return texts[0]
    columns = list(zip(*words, strict=True))
    changing = sum(len(set(column)) > 1 for column in columns)
    # Two commands with little in common are not one command with a gap.
    if changing > max(1, len(columns) // 4) or len(set(columns[0])) > 1:
        return texts[0]
    return " ".join(column[0] if len(set(column)) == 1 else "…" for column in columns)


def _mended(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    """It works after a change of the same file, in every session: otherwise it was mere
    development.
    """
    data = finding.data
    changed = [
        set(map(str, each.get("files", ()))) for each in seen.history if each.get("how") == "edit"
    ]
    same = set.intersection(*changed) if len(changed) >= SIGNAL.least_sessions else set()
    if len(same) != 1:
        return None
    path = same.pop()
    command, line = str(data["cmd"]), str(data["line"])
    if is_of_the_moment(command):
        return None
    content = (
        f"Running {code(command)} failed with {code(line)} in {len(changed)} sessions; each time "
        "a change of"
        f" {code(path)} mended it."
    )
    return MemoryDraft(
        "error_pattern",
        content,
        (f"$ {command}\n{line}",),
        files=(path,),
        modules=modules_of((path,)),
        data={
            "error": line,
            "fix": f"a change of {path}",
            "tool": str(data["tool"]),
            "command": command,
            "occurrences": len(changed),
            "fingerprint": str(data["fingerprint"]),
        },
    )
