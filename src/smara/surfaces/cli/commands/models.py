"""Define `smara models` and `smara embeddings`.

`models` shows calls and budgets of chat models; `embeddings` makes and replaces vectors.
"""

from __future__ import annotations

from typing import Any

import click

from smara.errors import ModelUnavailableError
from smara.meaning.models import EmbeddingProgress
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, Reply, common, limit_option, with_memory


def models_line(status: dict[str, Any]) -> str:
    """Return the models and their use, in one line."""
    names = ", ".join(status["models"]) or "offline"
    if not status["enabled"]:
        return f"{names}; disabled by models_enabled"
    if status["paused"]:
        return f"{names}; paused by {status['paused']['actor']}: {status['paused']['reason']}"
    if not status["models"] and not status["day"]["calls"]:
        return names
    return f"{names}; {_used(status['hour'])} this hour, {_used(status['day'])} today"


def _used(window: dict[str, Any]) -> str:
    text = (
        f"{window['tokens']:,} of {window['tokensLimit']:,} tokens and ${window['dollars']:,.2f} of"
        f" ${window['dollarsLimit']:,.2f}"
    )
    return text + (
        f" ({window['unpricedCalls']:,} calls at unknown prices)" if window["unpricedCalls"] else ""
    )


models_command = click.Group(
    "models", help="Show models, their budget and calls; pause and resume them."
)


@models_command.command("show")
@with_memory
def show(memory: Memory) -> Reply:
    """Show the models, the embedder and what is left of the budget."""
    status = {**memory.models.status(), "embedder": memory.models.embedder_status()}
    yield status
    embedder = status["embedder"]
    if embedder["modelId"] is None:
        line = f"{'off' if 'error' not in embedder else 'none'}: {embedder['why']}"
    else:
        place = "on this machine" if embedder["isLocal"] else "on a server"
        size = f"{embedder['dims']:,} dimensions"
        line = f"{embedder['modelId']}, {size}, {place}: {embedder['why']}"
    rows = [("models", models_line(status)), ("embedder", line)]
    for name in ("hour", "day"):
        window = status[name]
        units = {"tokens": "{:,} tokens", "dollars": "${:,.2f}"}
        if not embedder.get("isLocal", True):
            units["embeddingTokens"] = "{:,} embedding tokens"
        left = (
            form.format(max(0, window[f"{unit}Limit"] - window[unit]))
            for unit, form in units.items()
        )
        rows.append((f"left this {name}", ", ".join(left)))
    output.facts(rows)


@models_command.command("calls")
@limit_option(20, 1000, help="Show at most N.")
@with_memory
def calls(memory: Memory, limit: int) -> Reply:
    """List the newest model calls of this project, with their cost."""
    found = memory.models.calls(limit)
    yield [output.camel_case(each) for each in found]
    output.table(
        ["started", "purpose", "model", "outcome", "read", "written", "dollars"],
        [
            (
                output.when(each.started_at),
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
        wide=["written", "read"],
    )


@models_command.command("pause")
@click.option(
    "--reason",
    default="No reason was given.",
    show_default=False,
    help="The reason, shown in the status.",
)
@with_memory
def pause(memory: Memory, reason: str) -> Reply:
    """Stop all model calls of this store until `smara models resume`."""
    made = memory.models.pause(reason)
    yield {"paused": True, "reason": made.reason, "actor": made.actor, "at": made.paused_at}
    output.say("Paused all model calls. Continue with `smara models resume`.")


@models_command.command("resume")
@with_memory
def resume(memory: Memory) -> Reply:
    """Allow model calls again."""
    was_paused = memory.models.resume()
    yield {"paused": False, "wasPaused": was_paused}
    output.say("Resumed model calls." if was_paused else "Models were not paused.")


embeddings_command = click.Group(
    "embeddings", help="Show, create and replace the vectors of stored records."
)


@embeddings_command.command("status")
@with_memory
def status(memory: Memory) -> Reply:
    """Show the embedding model, and how many vectors exist or are missing."""
    found = memory.embeddings.status()
    yield {
        "embedder": found.embedder,
        "model": found.model_id,
        "answering": found.answering,
        "note": found.note,
        "spaces": [
            {
                "model": each.space.model_id,
                "embedder": each.space.embedder,
                "dims": each.space.dims,
                "state": each.space.state,
                "createdAt": each.space.created_at,
                "readyAt": each.space.ready_at,
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
            for each in found.spaces
        ],
    }
    output.facts(
        [
            ("embedder", found.embedder + (f" ({found.model_id})" if found.model_id else "")),
            ("state", found.note),
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
    output.print_lines(
        f"{failure.kind} {failure.no} has no vector: {failure.message}"
        for each in found.spaces
        for failure in each.failures[:5]
    )


@embeddings_command.command("run")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N records.")
@click.option("--seconds", type=click.FloatRange(0.1), metavar="S", help="The time limit.")
@click.option("--retry", is_flag=True, help="Retry records that the model refused before.")
@with_memory
def run(memory: Memory, limit: int | None, seconds: float | None, retry: bool) -> Reply:
    """Create missing vectors. Safe to interrupt and to repeat."""
    if retry:
        memory.embeddings.retry()
    return _reply(_run(memory, limit, seconds))


@embeddings_command.command("switch")
@click.argument("embedder")
@click.option(
    "--later",
    is_flag=True,
    help="Switch only; create the vectors later.",
)
@common
def switch(call: Invocation, embedder: str, later: bool) -> Reply:
    """Change the embedding model.

    EMBEDDER is a value of the setting, such as offline or
    ollama:qwen3-embedding:4b. The old vectors are used until the new ones are
    complete, and are kept, so that you can switch back.
    """
    with call.memory() as memory:
        model_id = memory.embeddings.switch(embedder).model_id
        done = EmbeddingProgress(model_id, stopped="limit") if later else _run(memory, None, None)
        is_kept = memory.embeddings.is_kept(embedder)
    if not is_kept:
        call.warnings.append(
            f"{embedder} sends text to another machine, so it is not kept for other processes. "
            f'Set embedder = "{embedder}" in smara.toml, or SMARA_EMBEDDER.'
        )
    return _reply(done)


@embeddings_command.command("drop")
@click.argument("model_id", metavar="MODEL")
@with_memory
def drop(memory: Memory, model_id: str) -> Reply:
    """Delete all vectors of a model in this project.

    MODEL is its name in `smara embeddings status`.
    """
    removed = memory.embeddings.drop(model_id)
    yield {"model": model_id, "removed": removed}
    output.say(f"Deleted {output.count(removed, 'vector')} of {model_id}.")


def _run(memory: Memory, limit: int | None, seconds: float | None) -> EmbeddingProgress:
    with output.bar("Embedding") as show:

        def tell(done: EmbeddingProgress) -> None:
            if show is not None:
                show(done.embedded, done.embedded + done.waiting)

        return memory.embeddings.embed_pending(limit, seconds, tell=None if show is None else tell)


def _reply(done: EmbeddingProgress) -> Reply:
    if done.stopped == "unavailable" and not done.embedded:
        raise ModelUnavailableError(done.note, reason="embedder")
    yield {
        "model": done.model_id,
        "embedded": done.embedded,
        "removed": done.removed,
        "failed": done.failed,
        "cached": done.cached,
        "waiting": done.waiting,
        "stopped": done.stopped,
        "note": done.note,
    }
    refused = f", {done.failed:,} refused (see `smara embeddings status`)" if done.failed else ""
    output.say(f"Created {output.count(done.embedded, 'vector')} of {done.model_id}{refused}.")
    if not done.is_done:
        reasons = {"limit": "the limit is reached", "deadline": "the time is over"}
        why = done.note or reasons.get(done.stopped, "")
        output.say(f"At least {done.waiting:,} still missing" + (f": {why}." if why else "."))
