"""Define `smara models` and `smara embeddings`.

`models` shows calls and budgets of chat models; `embeddings` makes and replaces vectors.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from smara.errors import ModelUnavailableError
from smara.meaning.models import EmbeddingProgress, SpaceStatus, Status
from smara.memory import Memory
from smara.models.models import ModelCall
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common
from smara.surfaces.cli.output import bar


def models_line(status: dict[str, Any]) -> str:
    """What thinks and what it has used, on one line."""
    names = ", ".join(status["models"]) or "offline"
    if not status["enabled"]:
        return f"{names}; turned off by models_enabled"
    if status["paused"]:
        return f"{names}; paused by {status['paused']['actor']}: {status['paused']['reason']}"
    if not status["models"] and not status["day"]["calls"]:
        return names
    return f"{names}; {_used(status['hour'])} this hour, {_used(status['day'])} this day"


def embedder_line(embedder: dict[str, Any]) -> str:
    """What turns text into vectors, and why it is this one."""
    if embedder["modelId"] is None:
        return f"{'off' if 'error' not in embedder else 'none'}: {embedder['why']}"
    place = "on this machine" if embedder["isLocal"] else "on a server"
    return f"{embedder['modelId']}, {embedder['dims']:,} dimensions, {place}: {embedder['why']}"


def limit_rows(status: dict[str, Any]) -> list[tuple[str, str]]:
    """What is left of each limit."""
    rows = []
    for name in ("hour", "day"):
        window = status[name]
        tokens, dollars = (
            max(0, window[f"{unit}Limit"] - window[unit]) for unit in ("tokens", "dollars")
        )
        reading = max(0, window["embeddingTokensLimit"] - window["embeddingTokens"])
        embedding = (
            ""
            if status.get("embedder", {}).get("isLocal", True)
            else f", {reading:,} embedding tokens"
        )
        rows.append((f"left this {name}", f"{tokens:,} tokens, ${dollars:,.2f}{embedding}"))
    return rows


def _used(window: dict[str, Any]) -> str:
    text = (
        f"{window['tokens']:,} of {window['tokensLimit']:,} tokens and ${window['dollars']:,.2f} of"
        f" ${window['dollarsLimit']:,.2f}"
    )
    return text + (
        f" ({window['unpricedCalls']:,} calls at unknown prices)" if window["unpricedCalls"] else ""
    )


@click.group("models")
def models_command() -> None:
    """What thinks: show its budget and its calls, pause it, resume it."""


@models_command.command("show")
@common
def show(call: Invocation) -> None:
    """The models and the embedder in force, and what is left of the budget."""
    with call.memory() as memory:
        status = {**memory.models.status(), "embedder": memory.models.embedder_status()}
    if call.as_json:
        output.envelope(status)
        return
    rows = [
        ("models", models_line(status)),
        ("embedder", embedder_line(status["embedder"])),
        *limit_rows(status),
    ]
    output.facts(rows)


@models_command.command("calls")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many."
)
@common
def calls(call: Invocation, limit: int) -> None:
    """The newest calls of this project, with what they used."""
    with call.memory() as memory:
        found = memory.models.calls(limit)
    if call.as_json:
        output.envelope([_shape(each) for each in found])
        return
    output.table(
        ["started", "purpose", "model", "outcome", "read", "written", "dollars"],
        [
            (
                output.moment(each.started_at),
                each.purpose,
                each.model,
                each.reason or each.outcome,
                each.input_tokens,
                each.output_tokens,
                "?" if each.cost_dollars is None else f"{each.cost_dollars:.4f}",
            )
            for each in found
        ],
        folding=["model"],
    )


@models_command.command("pause")
@click.option(
    "--reason", default="No reason was given.", show_default=False, help="Why, for whoever wonders."
)
@common
def pause(call: Invocation, reason: str) -> None:
    """Stop every call of a model in this store, in all processes, until `smara models resume`."""
    with call.memory() as memory:
        made = memory.models.pause(reason)
    if call.as_json:
        output.envelope(
            {"paused": True, "reason": made.reason, "actor": made.actor, "at": made.paused_at}
        )
    else:
        output.say("Paused. No model is asked until `smara models resume`.")


@models_command.command("resume")
@common
def resume(call: Invocation) -> None:
    """Allow calls of models again."""
    with call.memory() as memory:
        was_paused = memory.models.resume()
    if call.as_json:
        output.envelope({"paused": False, "wasPaused": was_paused})
    else:
        output.say("Resumed." if was_paused else "Models were not paused.")


def _shape(call: ModelCall) -> dict[str, Any]:
    names = {
        "input_tokens": "inputTokens",
        "output_tokens": "outputTokens",
        "cached_tokens": "cachedTokens",
        "cost_dollars": "costDollars",
        "is_measured": "isMeasured",
        "started_at": "startedAt",
        "ended_at": "endedAt",
    }
    return {names.get(name, name): value for name, value in asdict(call).items()}


@click.group("embeddings")
def embeddings_command() -> None:
    """Vectors of what is remembered: how they stand, make them, change the model."""


@embeddings_command.command("status")
@common
def status(call: Invocation) -> None:
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


@embeddings_command.command("run")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most so many records.")
@click.option("--seconds", type=click.FloatRange(0.1), metavar="S", help="At most so long.")
@click.option("--retry", is_flag=True, help="Also those that the model refused before.")
@common
def run(call: Invocation, limit: int | None, seconds: float | None, retry: bool) -> None:
    """Make the vectors that are missing. Safe to interrupt and to repeat, also while others do the
    same.
    """
    with call.memory() as memory:
        if retry:
            memory.embeddings.retry()
        done = _run(memory, limit, seconds)
        warnings = memory.warnings
    _answer(call, done, warnings)


@embeddings_command.command("switch")
@click.argument("embedder")
@click.option(
    "--later",
    is_flag=True,
    help="Only note it; a worker or `smara embeddings run` makes the vectors.",
)
@common
def switch(call: Invocation, embedder: str, later: bool) -> None:
    """Change the model: EMBEDDER as in the setting, such as offline or ollama:qwen3-embedding:4b.

    The vectors of the old one answer until those of the new one are complete, and are kept:
    switching back is as easy.
    """
    with call.memory() as memory:
        space = memory.embeddings.switch(embedder)
        done = (
            EmbeddingProgress(space.model_id, stopped="limit")
            if later
            else _run(memory, None, None)
        )
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


@embeddings_command.command("drop")
@click.argument("model_id", metavar="MODEL")
@common
def drop(call: Invocation, model_id: str) -> None:
    """Take away all vectors of a model in this project, by its name in `smara embeddings
    status`.
    """
    with call.memory() as memory:
        removed = memory.embeddings.drop(model_id)
    if call.as_json:
        output.envelope({"model": model_id, "removed": removed})
    else:
        output.say(f"{removed:,} vectors of {model_id} are gone. They can be made again.")


def _run(memory: Memory, limit: int | None, seconds: float | None) -> EmbeddingProgress:
    with bar("Embedding") as show:

        def tell(done: EmbeddingProgress) -> None:
            if show is not None:
                show(done.embedded, done.embedded + done.waiting)

        return memory.embeddings.embed_pending(limit, seconds, tell=None if show is None else tell)


def _answer(call: Invocation, done: EmbeddingProgress, warnings: list[str]) -> None:
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


def _progress_json(done: EmbeddingProgress) -> dict[str, Any]:
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
