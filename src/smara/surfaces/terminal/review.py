"""Define `smara review`: decide on memories, one key each.

Keys are read without a line's end, on Windows as over SSH. In an editor, every memory is one
line whose first word is the decision.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import click

from smara.core.extract import one_line
from smara.errors import InvalidInputError, SmaraError
from smara.knowledge.models import TYPES, TypedMemory
from smara.memory import Memory
from smara.shapes import evidence_json, memory_json
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.memories.show import memories_json, worth_of
from smara.surfaces.cli.options import (
    Invocation,
    Reply,
    actor_option,
    common,
    limit_option,
)
from smara.surfaces.cli.render import code_line, print_memories, say_more, styled
from smara.surfaces.terminal.keyboard import CONTROL_D, ESCAPE, Keyboard, open_keyboard
from smara.texts import evidence_place, memory_facts

Decision = Literal["accept", "edit", "reject", "skip", "why", "undo", "quit"]
_KEYS: dict[str, Decision] = {
    "a": "accept", "y": "accept", "e": "edit", "r": "reject", "n": "reject", "s": "skip",
    " ": "skip", "w": "why", "?": "why", "u": "undo", "q": "quit", ESCAPE: "quit",
    CONTROL_D: "quit", "": "quit",
}  # fmt: skip
_COLORS: dict[Decision, str | None] = {
    "accept": "green", "edit": "cyan", "reject": "red", "skip": None, "why": None, "undo": None,
    "quit": None,
}  # fmt: skip
_PAST = {"accept": "accepted", "edit": "edited", "reject": "rejected", "skip": "skipped"}
_QUOTED = 3
_FORM = """\
# Decide by the first word of each line: accept (a), reject (r) or skip (s).
# Change the text after the id to accept it in your words. Lines that you delete are skipped.
# Save and leave the editor to decide; nothing is done before.

"""


@click.command("review")
@click.option("--type", "type_", type=click.Choice(TYPES), metavar="T", help="Only of this type.")
@click.option("--session", "session_id", metavar="ID", help="Only from this session.")
@click.option("--editor", is_flag=True, help="Decide on all of them in your editor.")
@limit_option(1000, 1000)
@common
@actor_option
def review_command(
    call: Invocation,
    type_: Any,
    session_id: str | None,
    editor: bool,
    limit: int,
    actor: str | None,
) -> Reply:
    """Decide what is true: one key for each memory.

    a accepts, e edits, r rejects, s skips, w explains, u undoes the last
    decision, q ends. With --editor, all of them are lines in your $EDITOR. In
    a pipe they are listed.
    """
    with call.memory() as memory:
        memory.memories.check_code()  # memories whose code changed are to review, too
        page = list(memory.memories.to_review(session_id=session_id, type=type_, limit=limit))
        total = memory.memories.totals().to_review
        yield {
            "memories": memories_json(memory, page),
            "toReview": total,
        }
        if not page:
            say_more("Nothing to review.")
            return
        if not output.is_terminal() or not (editor or sys.stdin.isatty()):
            worth, code = worth_of(memory, page), memory.memories.freshness(page)
            print_memories(page, worth, is_in_review=True, code=code)
            return
        desk = _Desk(memory, actor)
        if editor:
            desk.edit_all(page)
        else:
            with open_keyboard() as keyboard:
                # The limit may hold some back, which the count must not hide.
                is_cut = len(page) == limit and not (type_ or session_id)
                desk.go_through(page, keyboard, total if is_cut else len(page))
        left = memory.memories.totals().to_review
    done = [f"{desk.counts[each]:,} {_PAST[each]}" for each in _PAST if desk.counts[each]]
    output.say("", f"{', '.join(done).capitalize() or 'Nothing decided'}; {left:,} left to review.")


class _Desk:
    """One sitting: the decisions so far, in their order."""

    def __init__(self, memory: Memory, actor: str | None) -> None:
        self._memory = memory
        self._who: dict[str, Any] = {"by": "person", "actor": actor}
        self._decided: list[tuple[int, Decision]] = []
        self.counts: Counter[str] = Counter()

    def go_through(self, page: Sequence[TypedMemory], keyboard: Keyboard, total: int) -> None:
        """Show each memory of those that wait and ask for a key."""
        self._keyboard = keyboard
        position = 0
        while position < len(page):
            found = page[position]
            self._show(found, f"{position + 1} of {total:,}")
            decision = self._ask()
            while decision == "why":
                self._explain(found)
                decision = self._ask()
            if decision == "quit":
                return
            try:
                position = self._decide(page, position, decision)
            except SmaraError as error:  # such as one that another person decided meanwhile
                output.sentence(str(error))
                position += 1

    def _decide(self, page: Sequence[TypedMemory], position: int, decision: Decision) -> int:
        """Do what a key says; return the position to go on with."""
        if decision == "undo":
            if not self._decided:
                output.say("Nothing to undo yet.", dim=True)
                return position
            position, last = self._decided.pop()
            if last != "skip":
                self._memory.memories.undo(page[position].id, **self._who)
            self.counts[last] -= 1
            output.say(f"Undone: {page[position].short_id} was {_PAST[last]}.", fg="yellow")
            return position
        text = None
        if decision == "edit":
            with self._keyboard.paused():
                text = (click.edit(page[position].content, extension=".md") or "").strip()
            if not text:
                output.say("Nothing was changed.", dim=True)
                return position
        self.settle(page[position], decision, text)
        self._decided.append((position, decision))
        output.say(f"{_PAST[decision].capitalize()}.", fg=_COLORS[decision])
        return position + 1

    def settle(self, memory: TypedMemory, decision: Decision, text: str | None = None) -> None:
        """Accept, edit or reject one memory."""
        changes: dict[str, Any] = {} if text is None else {"content": text}
        if decision in ("accept", "edit"):
            self._memory.memories.accept(memory.id, version=memory.version, **changes, **self._who)
        elif decision == "reject":
            self._memory.memories.reject(memory.id, **self._who)
        self.counts[decision] += 1

    def _ask(self) -> Decision:
        """Show the keys and read one; a key without a meaning is read over."""
        names: tuple[Decision, ...] = ("accept", "edit", "reject", "skip", "why", "undo", "quit")
        keys = (styled(name[0], bold=True, fg=_COLORS[name]) + name[1:] for name in names)
        click.echo(f"  {'  '.join(keys)} ", nl=False)
        while True:
            key = self._keyboard.read().lower()
            if (decision := _KEYS.get(key)) is not None:
                click.echo()
                return decision

    def _show(self, memory: TypedMemory, place: str) -> None:
        """Print a memory with its reasons and its evidence."""
        worth = self._memory.memories.confidence(memory).value
        code = self._memory.memories.freshness([memory]).get(memory.id)
        width = output.terminal_width()
        head = f"── {place} · {memory.short_id} "
        output.say("", head + "─" * max(0, width - len(head)), dim=True)
        output.say(output.paragraph(" ".join(memory.content.split()), "", ""), bold=True)
        facts = memory_facts(memory_json(memory, worth, code), is_in_review=True, is_local=True)
        output.say(output.paragraph(facts, "", ""), dim=True)
        rows = [("review", "; ".join(memory.review_reasons)), ("code", code_line(code))]
        sources = self._memory.memories.why(memory.id).sources
        for each in sources[:_QUOTED]:
            quote = one_line(each.text or each.evidence.quote or "", 240)
            spoken = f"{each.told_by}: " if each.told_by else ""
            where = evidence_place(evidence_json(each.evidence))
            rows.append(("evidence", f"{spoken}“{quote}”" if quote else where))
        if len(sources) > _QUOTED:
            rows.append(("", f"and {len(sources) - _QUOTED} more; w shows them"))
        for name, value in rows:
            if value:
                output.say(output.paragraph(value, f"  {name:<10}", " " * 12))
        output.say()

    def _explain(self, memory: TypedMemory) -> None:
        """Print trust, confidence and every source of a memory."""
        why = self._memory.memories.why(memory.id)
        lines = [("trust", f"{why.trust.tier}: {'; '.join(why.trust.reasons)}")]
        lines += [
            ("confidence", f"× {each.factor:.2f} = {each.value:.2f}  {each.text}")
            for each in why.confidence.steps
        ]
        for source in why.sources:
            place = evidence_place(evidence_json(source.evidence))
            when = f", {output.when(source.at)}" if source.at else ""
            text = one_line(source.text or source.evidence.quote or "", 1_000)
            lines.append(("source", f"{place}{when}" + (f": “{text}”" if text else "")))
        for name, value in lines:
            output.say(output.paragraph(value, f"  {name:<11}", " " * 13))
        output.say()

    def edit_all(self, page: Sequence[TypedMemory]) -> None:
        """Let an editor decide on all memories, and do what it says.

        Raises:
            InvalidInputError: If a line cannot be read; nothing was decided then.
        """
        lines = {each.short_id: one_line(each.content, 2_000) for each in page}
        text = _FORM + "".join(f"skip {name}  {line}\n" for name, line in lines.items())
        edited = click.edit(text, extension=".review")
        by_id = {each.short_id: each for each in page}
        decisions: list[tuple[TypedMemory, Decision, str | None]] = []
        for line in (edited or "").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            word, _, rest = line.strip().partition(" ")
            name, _, content = rest.strip().partition(" ")
            decision = _KEYS.get(word[:1].lower())
            if name not in by_id or decision not in ("accept", "reject", "skip"):
                raise InvalidInputError(
                    f"Nothing was decided: {one_line(line, 60)!r} does not begin with accept, "
                    "reject or skip and an id."
                )
            is_changed = decision == "accept" and content.strip() not in ("", lines[name])
            decisions.append((by_id[name], decision, content.strip() if is_changed else None))
        for found, chosen, words in decisions:
            self.settle(found, "edit" if words else chosen, words)
