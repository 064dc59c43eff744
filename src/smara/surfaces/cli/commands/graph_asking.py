"""``smara graph impact``, ``deps``, ``callers``, ``tests``, ``symbol``, ``map`` and the other
questions about code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from smara.codegraph.models import Walk
from smara.memory import Memory
from smara.surfaces.cli import graph_lines, graph_shapes, output
from smara.surfaces.cli.options import Call, common

_TARGET = click.argument("target")
_DEPTH = "How many steps, up to 20."
_MANY = click.IntRange(1, 10_000)


@contextmanager
def _asked(call: Call) -> Iterator[tuple[Memory, Any, list[str]]]:
    """The memory, the tree that is asked, and what has to be known of its answers."""
    with call.memory() as memory:
        asking = memory.code.asking()
        note = memory.code.catch_up()
        yield (
            memory,
            asking,
            [*memory.warnings, *([f"{note[0].upper()}{note[1:]}."] if note else [])],
        )


def _limit(default: int) -> Callable[[Any], Any]:
    return click.option(
        "--limit", type=_MANY, default=default, show_default=True, metavar="N", help="Show so many."
    )


def _depth(default: int) -> Callable[[Any], Any]:
    return click.option(
        "--depth",
        type=click.IntRange(1, 20),
        default=default,
        show_default=True,
        metavar="N",
        help=_DEPTH,
    )


def _answer_walk(
    call: Call, walk: Walk, warnings: list[str], one: str, many: str, is_backward: bool = True
) -> None:
    if call.as_json:
        output.envelope(graph_shapes.walk_json(walk), warnings)
        return
    output.warn(warnings)
    if output.is_terminal():
        graph_lines.say_walk(walk, one, many, is_backward=is_backward)
    else:
        output.table(graph_lines.WALK_COLUMNS, graph_lines.walk_rows(walk.reached, is_backward))


@click.command("impact")
@_TARGET
@_depth(3)
@_limit(200)
@click.option(
    "--picture",
    type=click.Choice(["dot", "mermaid"]),
    help="Draw it instead: for Graphviz or Markdown.",
)
@common
def impact(call: Call, target: str, depth: int, limit: int, picture: str | None) -> None:
    """What may break when TARGET changes: who depends on it, and through what.

    TARGET is a file, a folder, a name, PATH:NAME or PATH:LINE.
    """
    with _asked(call) as (_, asking, warnings):
        walk = asking.impact(target, depth, limit)
        drawn = asking.draw(walk, picture) if picture else None
    if drawn is None:
        _answer_walk(call, walk, warnings, one="depends on it", many="depend on it")
    elif call.as_json:
        output.envelope({"picture": picture, "text": drawn}, warnings)
    else:
        output.warn(warnings)
        output.say(drawn)


@click.command("deps")
@_TARGET
@_depth(1)
@_limit(200)
@common
def deps(call: Call, target: str, depth: int, limit: int) -> None:
    """What TARGET depends on."""
    with _asked(call) as (_, asking, warnings):
        walk = asking.deps(target, depth, limit)
    _answer_walk(
        call, walk, warnings, one="is used by it", many="are used by it", is_backward=False
    )


@click.command("callers")
@_TARGET
@_depth(1)
@_limit(200)
@common
def callers(call: Call, target: str, depth: int, limit: int) -> None:
    """Who calls TARGET."""
    with _asked(call) as (_, asking, warnings):
        walk = asking.callers(target, depth, limit)
    _answer_walk(call, walk, warnings, one="calls it", many="call it")


@click.command("tests")
@_TARGET
@_depth(3)
@_limit(200)
@common
def tests(call: Call, target: str, depth: int, limit: int) -> None:
    """The tests that come to TARGET, the nearest first."""
    with _asked(call) as (_, asking, warnings):
        walk = asking.tests_for(target, depth, limit)
    _answer_walk(call, walk, warnings, one="tests it", many="test it")


@click.command("symbol")
@_TARGET
@common
def symbol(call: Call, target: str) -> None:
    """All there is to say of TARGET: its head, callers, tests, what is known about it."""
    with _asked(call) as (memory, asking, warnings):
        card = asking.symbol(target)
        known = memory.code_knowledge.about([card.node])
    if call.as_json:
        output.envelope(graph_shapes.card_json(card, known), warnings)
        return
    output.warn(warnings)
    graph_lines.say_card(card, known)


@click.command("map")
@click.option(
    "--tokens",
    type=click.IntRange(1, 200_000),
    default=1_024,
    show_default=True,
    help="At most so many.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="A file or folder in play; may be repeated.",
)
@click.option(
    "--name", "names", multiple=True, metavar="NAME", help="A name in play; may be repeated."
)
@common
def map_code(call: Call, tokens: int, files: tuple[str, ...], names: tuple[str, ...]) -> None:
    """The most important names of the code, in so many tokens, ranked for what is in play."""
    with _asked(call) as (_, asking, warnings):
        found = asking.map(tokens, files, names)
    if call.as_json:
        output.envelope(graph_shapes.map_json(found), warnings)
        return
    output.warn(warnings)
    output.say(found.text)
    if output.is_terminal():
        shown = (
            f"{found.symbols} of {found.total_symbols} names in {found.files} of "
            f"{found.total_files} files"
        )
        output.say(f"\n{found.tokens} tokens: {shown}.", dim=True)


@click.command("cycles")
@click.option("--lazy", is_flag=True, help="Imports inside functions count, too.")
@_limit(50)
@common
def cycles(call: Call, lazy: bool, limit: int) -> None:
    """Files that import each other in a circle."""
    with _asked(call) as (_, asking, warnings):
        found = asking.cycles(limit, with_lazy=lazy)
    if call.as_json:
        output.envelope({"cycles": [graph_shapes.cycle_json(each) for each in found]}, warnings)
        return
    output.warn(warnings)
    if not found and output.is_terminal():
        output.say(
            "No file imports itself through others."
            + ("" if lazy else " --lazy looks into functions, too.")
        )
    for each in found:
        steps = [f"{path}:{line}" for path, line in zip(each.path, each.lines, strict=False)]
        output.say(" → ".join([*steps, each.path[-1]]))
        if len(each.files) > len(each.path) - 1 and output.is_terminal():
            output.say(f"  {len(each.files)} files are caught in it", dim=True)


@click.command("hotspots")
@_limit(20)
@common
def hotspots(call: Call, limit: int) -> None:
    """Files that much depends on and that change often."""
    with _asked(call) as (_, asking, warnings):
        asking.read_history()
        found = asking.hotspots(limit)
    if call.as_json:
        output.envelope({"hotspots": [graph_shapes.hotspot_json(each) for each in found]}, warnings)
        return
    output.warn(warnings)
    output.table(
        ("score", "file", "used by", "commits", "lines"),
        [
            (f"{each.score:.2f}", each.path, each.dependents, each.commits, each.lines)
            for each in found
        ],
        folding=("file",),
    )


@click.command("entries")
@_limit(50)
@common
def entries(call: Call, limit: int) -> None:
    """Where the program is entered: commands, routes, main functions."""
    with _asked(call) as (_, asking, warnings):
        found = asking.entry_points(limit)
    if call.as_json:
        output.envelope(
            {"entryPoints": [graph_shapes.entry_json(each) for each in found]}, warnings
        )
        return
    output.warn(warnings)
    rows = [
        (graph_lines.place(each.node), each.node.qualname, each.why, each.reaches) for each in found
    ]
    output.table(("where", "name", "why", "reaches"), rows, folding=("where", "name"))


@click.command("cochange")
@click.argument("file")
@_limit(20)
@common
def cochange(call: Call, file: str, limit: int) -> None:
    """Files that change together with FILE, from the history of the repository."""
    with _asked(call) as (_, asking, warnings):
        asking.read_history()
        found = asking.cochange(file, limit)
    if call.as_json:
        output.envelope(
            {"file": file, "files": [graph_shapes.cochange_json(each) for each in found]}, warnings
        )
        return
    output.warn(warnings)
    output.table(
        ("confidence", "together", "file", "last"),
        [
            (f"{each.confidence:.0%}", each.together, each.path, output.moment(each.last_at))
            for each in found
        ],
        folding=("file",),
    )


@click.command("modules")
@click.argument("folders", nargs=-1)
@click.option("--describe", is_flag=True, help="Let the configured model say what they are for.")
@_limit(40)
@common
def modules(call: Call, folders: tuple[str, ...], describe: bool, limit: int) -> None:
    """The parts of the program: what each is for, what matters in it, what it uses."""
    with _asked(call) as (memory, asking, warnings):
        if describe:
            asking.describe(memory.models, limit)
        found = asking.modules([each.rstrip("/") or "." for each in folders])[:limit]
    if call.as_json:
        output.envelope({"modules": [graph_shapes.module_json(each) for each in found]}, warnings)
        return
    output.warn(warnings)
    if not output.is_terminal():
        output.table(
            ("path", "files", "symbols", "source", "purpose"),
            [(each.path, each.files, each.symbols, each.source, each.purpose) for each in found],
        )
        return
    for each in found:
        graph_lines.say_module(each)


ASKING: list[click.Command] = [
    impact, deps, callers, tests, symbol, map_code, modules, hotspots, cycles, entries, cochange,
]  # fmt: skip
"""In the order in which a person meets them."""
