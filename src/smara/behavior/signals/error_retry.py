"""Detect a failed command and the fix that worked (signal 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from smara.actions.commands import (
    is_dictated,
    is_named_anew,
    is_of_the_moment,
    is_same_program,
)
from smara.actions.error_quote import UNQUOTED, error_quote, evidence_words, failed_words
from smara.actions.failures import is_option, is_passing
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
    quotes=("agent", "tool"),
    learned_in=("build", "terminal", "pr_review"),
    is_observation=True,
    key_field="fingerprint",
)
_OFTEN = 2
"""Failing so often in one session, before something worked, counts as having failed in two."""


def detect(pad: Pad, pads: Sequence[Pad]) -> Iterator[SignalFinding]:
    for print_, entry in pad.errors:
        yield SignalFinding(
            "error_retry",
            print_,
            f"{entry.command}: {entry.line}"[:160],
            step=entry.first_step,
            data=non_empty(
                fingerprint=print_,
                times=entry.count,
                tool=entry.tool,
                command=entry.command,
                line=entry.line,
                how=entry.how,
                fix=entry.fix,
                files=entry.files,
                is_environment=entry.is_environment,
            ),
            is_proven=bool(entry.how),
            counts_as=2 if entry.count >= _OFTEN and entry.how else 1,
            # The words on a fix may come later than the failure, from a page read in between.
            last_step=entry.resolved_step or entry.last_step,
        )


def draft(finding: SignalFinding, seen: Seen) -> MemoryDraft | None:
    data = finding.data
    how, command, line = data.get("how"), str(data["command"]), str(data["line"])
    fix = str(data.get("fix", ""))
    if how == "path":
        return MemoryDraft(
            "gotcha",
            f"There is no {code(command)}; the file is {code(fix)}.",
            (evidence_words(command, line), f"found: {fix}"),
            files=(fix,),
            data={"symptom": f"reading {command} fails", "workaround": f"read {fix}"},
        )
    history = [each for each in seen.history if each.get("how") == how]
    failure = KnownFix(command, line, fix, str(data["tool"]), str(data["fingerprint"]))
    if how == "edit":
        # A change of the same file in every session; otherwise it was mere development.
        changed = [set(map(str, each.get("files", ()))) for each in history]
        same = set.intersection(*changed) if len(changed) >= SIGNAL.least_sessions else set()
        if len(same) != 1 or is_of_the_moment(command):
            return None
        path = same.pop()
        return MemoryDraft(
            "error_pattern",
            f"Running {code(command)} {failed_words(line)} in {len(changed)} sessions; each "
            f"time a change of {code(path)} mended it.",
            (evidence_words(f"$ {command}", line),),
            files=(path,),
            data=failure._replace(fix=f"a change of {path}").fields(len(changed)),
        )
    if how not in ("command", "first"):
        return None
    command, line, fix = (
        _constant([str(each.get(name, "")) for each in history])
        for name in ("command", "line", "fix")
    )
    if not is_lasting(command, line, fix):
        return None
    failure = failure._replace(command=command, line=line, fix=fix)
    times = sum(int(each.get("times", 1)) for each in seen.history)
    return failure.draft(
        (evidence_words(f"$ {command}", line), f"$ {fix}\n(worked)"), times, is_first=how == "first"
    )


class KnownFix(NamedTuple):
    """An error of a command, and the command that worked."""

    command: str
    line: str
    fix: str
    tool: str
    fingerprint: str

    def fields(self, occurrences: int) -> dict[str, object]:
        """Return the further fields of its memory."""
        return {
            "error": error_quote(self.line) or UNQUOTED,
            "fix": self.fix,
            "tool": self.tool,
            "command": self.command,
            "occurrences": occurrences,
            "fingerprint": self.fingerprint,
        }

    def draft(
        self,
        quotes: tuple[str, ...],
        occurrences: int,
        *,
        is_first: bool,
        taint: tuple[str, ...] = (),
    ) -> MemoryDraft:
        """Draft its memory; ``is_first`` if the fix is run before the command."""
        worked = f"running {code(self.fix)} first" if is_first else code(self.fix)
        return MemoryDraft(
            "error_pattern",
            f"Running {code(self.command)} {failed_words(self.line)}; what worked: {worked}.",
            quotes,
            data=self.fields(occurrences),
            taint=taint,
        )


def is_lasting(command: str, line: str, fix: str) -> bool:
    """Return True if an error and its fix will last."""
    is_brief = is_of_the_moment(command) or is_of_the_moment(fix) or is_passing(line)
    if is_brief or is_dictated(fix, line):
        return False
    # Another commit fails for another reason: without its error, a fix belongs to nothing.
    if is_named_anew(command) and not error_quote(line):
        return False
    # Taking another program teaches nothing of the options that this one has.
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
