"""Define `smara working`: show, replace and edit working memory."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from smara.errors import ConflictError, InvalidInputError
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.options import Invocation, common, complete_thread
from smara.working.models import (
    FORMATS,
    TEMPLATE_NAMES,
    WorkingFormat,
    WorkingMemory,
    WorkingVersion,
)

Command = Callable[..., Any]


@click.group("working")
def working_command() -> None:
    """What is held in mind: one small page for each resource, and one for each thread.

    Without --thread the page is the resource's, which its threads share.
    """


def of_a_page(function: Command) -> Command:
    """The options that say which page is meant."""
    for option in (
        click.option(
            "--thread",
            "thread_id",
            metavar="ID",
            shell_complete=complete_thread,
            help="A thread's page.",
        ),
        click.option("--resource", "resource_id", metavar="ID", help="The page of this resource."),
    ):
        function = option(function)
    return function


def of_a_change(function: Command) -> Command:
    """The options of every change."""
    for option in (
        click.option("--reason", metavar="TEXT", help="Why; kept in the history."),
        click.option("--actor", metavar="NAME", help="Who; kept in the history."),
        click.option(
            "--expected-version",
            type=click.IntRange(0),
            metavar="N",
            help="Refuse unless the page is at this version.",
        ),
    ):
        function = option(function)
    return function


@working_command.command("show")
@of_a_page
@click.option("--rendered", is_flag=True, help="As a model is shown it: sanitized and cut.")
@click.option("--version", type=click.IntRange(1), metavar="N", help="As it was then.")
@common
def show(call: Invocation, rendered: bool, version: int | None, **place: Any) -> None:
    """The page; while nobody has written it, the empty template."""
    if rendered and version is not None:
        raise InvalidInputError("--rendered shows the page as it is now. Leave out --version.")
    with call.memory() as memory:
        page = memory.working.get(**place)
        block = memory.working.render(**place) if rendered else None
        old = memory.working.get_version(version, **place) if version is not None else None
        warnings = memory.warnings
    if call.as_json:
        shown = _version_json(old) if old else _page_json(page)
        output.envelope(shown if block is None else {**shown, "rendered": block}, warnings)
        return
    output.warn(warnings)
    if output.is_terminal():
        output.say(_heading(page, old), bold=True)
    text = block if block is not None else (old or page).content
    output.say(text.removesuffix("\n"))


@working_command.command("put")
@click.argument(
    "file",
    metavar="[FILE|-]",
    required=False,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@of_a_page
@click.option(
    "--template",
    metavar="NAME|FILE",
    help=f"What the page begins with: {', '.join(TEMPLATE_NAMES)}, or a Markdown file.",
)
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A JSON Schema that the page satisfies.",
)
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), help="What the page is from now on."
)
@of_a_change
@common
def put(
    call: Invocation,
    file: str | None,
    template: str | None,
    schema: str | None,
    format_: WorkingFormat | None,
    **given: Any,
) -> None:
    """Replace the whole page by a file, by standard input (-), or by an empty template."""
    if file is None and template is None:
        raise InvalidInputError("Name a file, - for standard input, or a --template to begin with.")
    content = None if file is None else _read(file)
    shape = (
        _read(template)
        if template and template not in TEMPLATE_NAMES and Path(template).is_file()
        else template
    )
    rules = None if schema is None else _read(schema)
    with call.memory() as memory:
        page = memory.working.put(content, template=shape, schema=rules, format=format_, **given)
        warnings = memory.warnings
    _report(call, page, warnings)


@working_command.command("edit")
@of_a_page
@click.option(
    "--section", metavar="NAME", help="A heading, a field, Heading/Field, or a path of a JSON page."
)
@click.option(
    "--content",
    metavar="TEXT|-",
    help="What the section is to say; - reads it from standard input.",
)
@of_a_change
@common
def edit(call: Invocation, section: str | None, content: str | None, **given: Any) -> None:
    """Change one section, or open the page in your editor."""
    if (section is None) is not (content is None):
        raise InvalidInputError("--section and --content go together.")
    if section is None and not output.is_terminal():
        raise InvalidInputError(
            "An editor needs a terminal. Give --section and --content, or use `smara working put`."
        )
    with call.memory() as memory:
        page = (
            _edit_by_hand(memory, given)
            if section is None
            else _edit_section(memory, section, content or "", given=given)
        )
        warnings = memory.warnings
    _report(call, page, warnings)


@working_command.command("history")
@of_a_page
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    default=20,
    show_default=True,
    help="The newest that many.",
)
@click.option(
    "--before", type=click.IntRange(1), metavar="N", help="Only versions before this one."
)
@common
def history(call: Invocation, limit: int, before: int | None, **place: Any) -> None:
    """The versions of the page, newest first."""
    with call.memory() as memory:
        versions = memory.working.history(**place, limit=limit, before=before)
        warnings = memory.warnings
    if call.as_json:
        output.envelope([_version_json(version) for version in versions], warnings)
        return
    output.warn(warnings)
    rows = [
        (
            each.version,
            output.moment(each.created_at),
            each.actor,
            len(each.content),
            each.reason or "",
        )
        for each in versions
    ]
    output.table(
        ("version", "time", "actor", "characters", "reason"), rows, folding=("actor", "reason")
    )


@working_command.command("restore")
@click.argument("version", type=click.IntRange(1), metavar="VERSION")
@of_a_page
@of_a_change
@common
def restore(call: Invocation, version: int, **given: Any) -> None:
    """Put an old version back, as a new one."""
    with call.memory() as memory:
        page = memory.working.restore(version, **given)
        warnings = memory.warnings
    _report(call, page, warnings)


def _edit_section(
    memory: Memory, section: str, content: str, given: dict[str, Any]
) -> WorkingMemory:
    text: Any = _read("-") if content == "-" else content
    place = {name: given[name] for name in ("resource_id", "thread_id")}
    if memory.working.get(**place).format == "json":
        text = _json_or_text(text)
    return memory.working.update(section, text, **given)


def _json_or_text(text: str) -> Any:
    """What is typed for a field of a JSON page: JSON where it is JSON, and else the words
    themselves.
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def _edit_by_hand(memory: Memory, given: dict[str, Any]) -> WorkingMemory:
    place = {name: given[name] for name in ("resource_id", "thread_id")}
    page = memory.working.get(**place)
    suffix = ".json" if page.format == "json" else ".md"
    edited = click.edit(page.content, extension=suffix)
    if edited is None:
        return page
    version = page.version if given["expected_version"] is None else given["expected_version"]
    try:
        return memory.working.put(edited, **{**given, "expected_version": version})
    except (ConflictError, InvalidInputError) as error:
        raise type(error)(
            f"{error} Your text is kept in {_kept(edited, suffix)}.", **error.facts
        ) from None


def _kept(text: str, suffix: str) -> str:
    """Where a text is that could not be stored; what a person has written is not thrown away."""
    with tempfile.NamedTemporaryFile(
        "w",
        prefix="smara-working-",
        suffix=suffix,
        delete=False,
        encoding="utf-8",
        errors="surrogateescape",
    ) as file:
        file.write(text)
    return file.name


def _read(file: str) -> str:
    # Bytes that are not UTF-8 are kept, as lone surrogates, rather than refused.
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data.decode("utf-8", "surrogateescape")


def _report(call: Invocation, page: WorkingMemory, warnings: list[str]) -> None:
    if call.as_json:
        output.envelope(_page_json(page), warnings)
        return
    output.warn(warnings)
    if not page.is_stored:
        output.say("Nothing was changed.")
        return
    output.say(f"T{str(page)[1:]} is at version {page.version}: {len(page.content):,} characters.")


def _heading(page: WorkingMemory, old: WorkingVersion | None) -> str:
    owner = f"thread {page.thread_id}" if page.thread_id else f"resource {page.resource_id}"
    if old is not None:
        return (
            f"— {owner} · version {old.version} of {page.version} · "
            f"{output.moment(old.created_at)} · {old.actor}"
        )
    if not page.is_stored:
        return f"— {owner} · nothing is written yet; this is the empty template"
    return (
        f"— {owner} · version {page.version} · {output.moment(page.updated_at or 0)} · "
        f"{page.updated_by}"
    )


def _page_json(page: WorkingMemory) -> dict[str, Any]:
    return {
        "id": page.id,
        "scope": page.scope,
        "resourceId": page.resource_id,
        "threadId": page.thread_id,
        "format": page.format,
        "content": page.content,
        "value": page.value,
        "template": page.template,
        "schema": page.schema,
        "version": page.version,
        "createdAt": page.created_at,
        "updatedAt": page.updated_at,
        "updatedBy": page.updated_by,
    }


def _version_json(version: WorkingVersion) -> dict[str, Any]:
    return {
        "version": version.version,
        "format": version.format,
        "content": version.content,
        "template": version.template,
        "schema": version.schema,
        "actor": version.actor,
        "reason": version.reason,
        "createdAt": version.created_at,
    }
