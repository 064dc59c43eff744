"""Define `smara working`: show, replace and edit working memory."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from smara.errors import ConflictError, InvalidInputError
from smara.memory import Memory
from smara.shapes import working_json
from smara.surfaces.cli import output
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    common,
    complete_thread,
    limit_option,
    text_or_input,
    together,
    with_memory,
)
from smara.working.models import (
    FORMATS,
    TEMPLATE_NAMES,
    WorkingFormat,
    WorkingMemory,
)

working_command = click.Group(
    "working",
    help="""Show and edit working memory: a page per resource and per thread.

    Without --thread it is the page of the resource, which its threads share.
    """,
)


of_a_page = together(
    click.option("--resource", "resource_id", metavar="ID", help="The page of this resource."),
    click.option(
        "--thread",
        "thread_id",
        metavar="ID",
        shell_complete=complete_thread,
        help="The page of this thread.",
    ),
)
of_a_change = together(
    click.option(
        "--expected-version",
        type=click.IntRange(0),
        metavar="N",
        help="Refuse unless the page is at this version.",
    ),
    click.option("--actor", metavar="NAME", help="Who changes it, kept in the history."),
    click.option("--reason", metavar="TEXT", help="The reason, kept in the history."),
)


@working_command.command("show")
@of_a_page
@click.option("--rendered", is_flag=True, help="Show it as a model sees it: sanitized and cut.")
@click.option("--version", type=click.IntRange(1), metavar="N", help="Show this version.")
@common
def show(call: Invocation, rendered: bool, version: int | None, **place: Any) -> Reply:
    """Show the page, or the empty template if nothing is written."""
    if rendered and version is not None:
        raise InvalidInputError("--rendered shows the page as it is now. Leave out --version.")
    with call.memory() as memory:
        page = memory.working.get(**place)
        block = memory.working.render(**place) if rendered else None
        old = memory.working.get_version(version, **place) if version is not None else None
    shown = output.camel_case(old) if old else working_json(page)
    yield shown if block is None else {**shown, "rendered": block}
    if output.is_terminal():
        owner = f"thread {page.thread_id}" if page.thread_id else f"resource {page.resource_id}"
        if old is not None:
            when = f"{output.moment(old.created_at)} · {old.actor}"
            state = f"version {old.version} of {page.version} · {when}"
        elif page.is_stored:
            when = f"{output.moment(page.updated_at or 0)} · {page.updated_by}"
            state = f"version {page.version} · {when}"
        else:
            state = "nothing written yet; this is the empty template"
        output.say(f"— {owner} · {state}", bold=True)
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
    help=f"The template: {', '.join(TEMPLATE_NAMES)}, or a Markdown file.",
)
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A JSON Schema for the page.",
)
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), help="The format of the page from now on."
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
) -> Reply:
    """Replace the page by a file, standard input (-) or a template."""
    if file is None and template is None:
        raise InvalidInputError("Give a file, - for standard input, or a --template.")
    content = None if file is None else _read(file)
    shape = (
        _read(template)
        if template and template not in TEMPLATE_NAMES and Path(template).is_file()
        else template
    )
    rules = None if schema is None else _read(schema)
    with call.memory() as memory:
        page = memory.working.put(content, template=shape, schema=rules, format=format_, **given)
    return _reply(page)


@working_command.command("edit")
@of_a_page
@click.option(
    "--section", metavar="NAME", help="A heading, a field, Heading/Field, or a path of a JSON page."
)
@click.option(
    "--content",
    metavar="TEXT|-",
    help="The text of the section; - reads standard input.",
)
@of_a_change
@common
def edit(call: Invocation, section: str | None, content: str | None, **given: Any) -> Reply:
    """Change one section, or open the page in your editor."""
    if (section is None) is not (content is None):
        raise InvalidInputError("--section and --content go together.")
    if section is None and not output.is_terminal():
        raise InvalidInputError(
            "An editor needs a terminal. Give --section and --content, or use `smara working put`."
        )
    with call.memory() as memory:
        if section is None:
            page = _edit_by_hand(memory, given)
        else:
            value: Any = text_or_input(content)
            place = {name: given[name] for name in ("resource_id", "thread_id")}
            if memory.working.get(**place).format == "json":
                with suppress(ValueError):  # a value that is not JSON is text
                    value = json.loads(value)
            page = memory.working.update(section, value, **given)
    return _reply(page)


@working_command.command("history")
@of_a_page
@limit_option(20, help="Show at most N, the newest.")
@click.option(
    "--before", type=click.IntRange(1), metavar="N", help="Only versions before this one."
)
@with_memory
def history(memory: Memory, limit: int, before: int | None, **place: Any) -> Reply:
    """List the versions of the page, newest first."""
    versions = memory.working.history(**place, limit=limit, before=before)
    yield [output.camel_case(version) for version in versions]
    output.table(
        ("version", "time", "actor", "characters", "reason"),
        [
            (
                each.version,
                output.moment(each.created_at),
                each.actor,
                len(each.content),
                each.reason or "",
            )
            for each in versions
        ],
        folding=("actor", "reason"),
    )


@working_command.command("restore")
@click.argument("version", type=click.IntRange(1), metavar="VERSION")
@of_a_page
@of_a_change
@with_memory
def restore(memory: Memory, version: int, **given: Any) -> Reply:
    """Restore an old version as a new one."""
    return _reply(memory.working.restore(version, **given))


def _edit_by_hand(memory: Memory, given: dict[str, Any]) -> WorkingMemory:
    """Open the page in the editor and store it; a refused text is kept in a file."""
    page = memory.working.get(**{name: given[name] for name in ("resource_id", "thread_id")})
    suffix = ".json" if page.format == "json" else ".md"
    edited = click.edit(page.content, extension=suffix)
    if edited is None:
        return page
    version = page.version if given["expected_version"] is None else given["expected_version"]
    try:
        return memory.working.put(edited, **{**given, "expected_version": version})
    except (ConflictError, InvalidInputError) as error:
        with tempfile.NamedTemporaryFile(
            "w",
            prefix="smara-working-",
            suffix=suffix,
            delete=False,
            encoding="utf-8",
            errors="surrogateescape",
        ) as file:
            file.write(edited)
        raise type(error)(f"{error} Your text is saved in {file.name}.", **error.facts) from None


def _read(file: str) -> str:
    text = text_or_input("-") if file == "-" else None
    return text if text is not None else Path(file).read_text("utf-8", "surrogateescape")


def _reply(page: WorkingMemory) -> Reply:
    yield working_json(page)
    if page.is_stored:
        output.say(
            f"Saved version {page.version} of {page}: "
            f"{output.count(len(page.content), 'character')}."
        )
    else:
        output.say("Nothing was changed.")
