"""What sessions left to be done: reading their transcripts, and ending them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol

from smara.adapters.hosts.reaching import told_in
from smara.adapters.importing import Importer
from smara.core import log
from smara.errors import DatabaseError, SmaraError
from smara.intake.models import Job, JobKind
from smara.memory import Memory


class Counts(Protocol):
    """Where it is counted what was done."""

    jobs_done: int
    jobs_failed: int


def run_due(
    memory: Memory, counts: Counts, kinds: Sequence[JobKind], has_time: Callable[[], bool]
) -> None:
    """Do what is due, one after the other, while there is time. A job that fails is tried again
    later.
    """
    for job in memory.intake.due():
        if not has_time():
            return
        if job.kind not in kinds:
            continue
        try:
            _run(memory, job)
        except DatabaseError:
            raise  # the store itself has trouble: nothing else would go better
        except Exception as error:  # noqa: BLE001 - one bad job must not hold up the others
            reason = f"{type(error).__name__}: {log.redacted(str(error))}"[:500]
            memory.intake.failed(job, str(error) if isinstance(error, SmaraError) else reason)
            counts.jobs_failed += 1
        else:
            memory.intake.done(job)
            counts.jobs_done += 1


def _run(memory: Memory, job: Job) -> None:
    if job.kind == "transcript":
        path = str(job.facts.get("path", ""))
        if os.path.exists(
            path
        ):  # a host may have cleaned up; the hooks' own words are then all there is
            Importer(memory).import_file(path, only=str(job.facts.get("only") or "") or None)
            if "only" not in job.facts and (
                told := told_in(path)
            ):  # a database is no record of lines
                memory.moments.reached(job.session_id[:200], told)
    else:
        memory.behavior.finalize(job.session_id)
