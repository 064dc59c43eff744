"""``smara embeddings``"""

from __future__ import annotations

from typing import Any

import click

from smara.errors import ModelUnavailableError
from smara.meaning.models import Progress, SpaceStatus, Status
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Call, common
from smara.surfaces.cli.progress import bar


@click.group("embeddings")
def command() -> None:
    """Vectors of what is remembered: how they stand, make them, change the model."""


@command.command("status")
@common
def status(call: Call) -> None:
    """Which model answers, how many vectors there are, and how many are missing."""
    with call.memory() as memory:
        found = memory.embeddings.status()
        warnings = memory.warnings
    if call.as_json:
        output.envelope(_status_json(found), warnings)
        return
    output.warn(warnings)
    output.facts(
        [
            ("embedder", found.embedder + (f" ({found.model_id})" if found.model_id else "")),
            ("answers", found.note),
        ]
    )
    if found.spaces:
        output.say()
        output.table(
            ["model", "state", "dims", "vectors", "waiting", "refused"],
            [
                (
                    each.space.model_id,
                    each.space.state,
                    each.space.dims,
                    each.total,
                    each.waiting,
                    len(each.failures),
                )
                for each in found.spaces
            ],
            folding=["model"],
        )
    for each in found.spaces:
        for failure in each.failures[:5]:
            output.say(f"{failure.kind} {failure.no} has no vector: {failure.message}")


@command.command("run")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most so many records.")
@click.option("--seconds", type=click.FloatRange(0.1), metavar="S", help="At most so long.")
@click.option("--retry", is_flag=True, help="Also those that the model refused before.")
@common
def run(call: Call, limit: int | None, seconds: float | None, retry: bool) -> None:
    """Make the vectors that are missing. Safe to interrupt and to repeat, also while others do the
    same.
    """
    with call.memory() as memory:
        if retry:
            memory.embeddings.retry()
        done = _run(memory, limit, seconds)
        warnings = memory.warnings
    _answer(call, done, warnings)


@command.command("switch")
@click.argument("embedder")
@click.option(
    "--later",
    is_flag=True,
    help="Only note it; a worker or `smara embeddings run` makes the vectors.",
)
@common
def switch(call: Call, embedder: str, later: bool) -> None:
    """Change the model: EMBEDDER as in the setting, such as offline or ollama:qwen3-embedding:4b.

    The vectors of the old one answer until those of the new one are complete, and are kept:
    switching back is as easy.
    """
    with call.memory() as memory:
        space = memory.embeddings.switch(embedder)
        done = Progress(space.model_id, stopped="limit") if later else _run(memory, None, None)
        is_kept = memory.embeddings.is_kept(embedder)
        warnings = memory.warnings
    if not is_kept:
        warnings = [
            *warnings,
            f"Text goes to another machine with {embedder}, so each process has to be told: set "
            "embedder = "
            f'"{embedder}" in smara.toml, or SMARA_EMBEDDER.',
        ]
    _answer(call, done, warnings)


@command.command("drop")
@click.argument("model_id", metavar="MODEL")
@common
def drop(call: Call, model_id: str) -> None:
    """Take away all vectors of a model in this project, by its name in `smara embeddings
    status`.
    """
    with call.memory() as memory:
        removed = memory.embeddings.drop(model_id)
    if call.as_json:
        output.envelope({"model": model_id, "removed": removed})
    else:
        output.say(f"{removed:,} vectors of {model_id} are gone. They can be made again.")


def _run(memory: Memory, limit: int | None, seconds: float | None) -> Progress:
    with bar("Embedding") as show:

        def tell(done: Progress) -> None:
            if show is not None:
                show(done.embedded, done.embedded + done.waiting)

        return memory.embeddings.embed_pending(limit, seconds, tell=None if show is None else tell)


def _answer(call: Call, done: Progress, warnings: list[str]) -> None:
    if done.stopped == "unavailable" and not done.embedded:
        raise ModelUnavailableError(done.note, reason="embedder")
    if call.as_json:
        output.envelope(_progress_json(done), warnings)
        return
    output.warn(warnings)
    refused = (
        f", {done.failed:,} were refused (`smara embeddings status` says why)"
        if done.failed
        else ""
    )
    output.say(f"{done.embedded:,} records have their vectors of {done.model_id} now{refused}.")
    if not done.is_done:
        why = done.note or {"limit": "the limit is reached", "deadline": "the time is over"}.get(
            done.stopped, ""
        )
        output.say(f"{done.waiting:,} or more wait" + (f": {why}." if why else "."))


def _progress_json(done: Progress) -> dict[str, Any]:
    return {
        "model": done.model_id,
        "embedded": done.embedded,
        "removed": done.removed,
        "failed": done.failed,
        "cached": done.cached,
        "waiting": done.waiting,
        "stopped": done.stopped,
        "note": done.note,
    }


def _status_json(found: Status) -> dict[str, Any]:
    return {
        "embedder": found.embedder,
        "model": found.model_id,
        "answering": found.answering,
        "note": found.note,
        "spaces": [_space_json(each) for each in found.spaces],
    }


def _space_json(each: SpaceStatus) -> dict[str, Any]:
    space = each.space
    return {
        "model": space.model_id,
        "embedder": space.embedder,
        "dims": space.dims,
        "state": space.state,
        "createdAt": space.created_at,
        "readyAt": space.ready_at,
        "vectors": dict(each.vectors),
        "waiting": each.waiting,
        "holder": each.holder,
        "failures": [
            {
                "kind": failure.kind,
                "no": failure.no,
                "code": failure.code,
                "message": failure.message,
                "failedAt": failure.failed_at,
            }
            for failure in each.failures
        ],
    }
