"""``smara models``"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from smara.models.models import ModelCall
from smara.surfaces.cli import output
from smara.surfaces.cli.model_lines import embedder_line, limit_rows, models_line
from smara.surfaces.cli.options import Call, common


@click.group("models")
def command() -> None:
    """What thinks: show its budget and its calls, pause it, resume it."""


@command.command("show")
@common
def show(call: Call) -> None:
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


@command.command("calls")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many."
)
@common
def calls(call: Call, limit: int) -> None:
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


@command.command("pause")
@click.option(
    "--reason", default="No reason was given.", show_default=False, help="Why, for whoever wonders."
)
@common
def pause(call: Call, reason: str) -> None:
    """Stop every call of a model in this store, in all processes, until `smara models resume`."""
    with call.memory() as memory:
        made = memory.models.pause(reason)
    if call.as_json:
        output.envelope(
            {"paused": True, "reason": made.reason, "actor": made.actor, "at": made.paused_at}
        )
    else:
        output.say("Paused. No model is asked until `smara models resume`.")


@command.command("resume")
@common
def resume(call: Call) -> None:
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
