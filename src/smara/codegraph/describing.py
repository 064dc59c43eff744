"""Modules described by a model: the purpose in words, where the structure only has names.

What a model said is kept until the names in the folder change. Without a model, over budget or
with a reply that cannot be read, everything stays as it was: the structure speaks for itself.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smara.codegraph.lookup import CodeLookup
from smara.codegraph.models import CodeModule
from smara.codegraph.modules import LONGEST_FLOW, LONGEST_PURPOSE, MOST_FLOWS
from smara.core import log
from smara.core.clock import Clock
from smara.core.delimiters import neutralized
from smara.core.prompts import load_prompt
from smara.core.storable import from_storable, to_storable
from smara.database.database import Session
from smara.errors import BadReplyError
from smara.models.caller import Models
from smara.models.chat import ChatRequest
from smara.secrets.redact import redact

PURPOSE = "describe"
AT_ONCE = 8
_PROMPTS = Path(__file__).parent / "prompts"
_OUTPUT_TOKENS = 4_000
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Described:
    """What is kept of a module."""

    purpose: str
    flows: tuple[tuple[str, ...], ...]
    model: str | None
    fingerprint: str


class Descriptions:
    """The table ``code_modules`` of one tree."""

    def __init__(self, lookup: CodeLookup, clock: Clock) -> None:
        self._lookup = lookup
        self._clock = clock

    def all(self) -> dict[str, Described]:
        """What models said of folders, by path."""
        with self._lookup.database.read() as session:
            rows = session.all(
                self._lookup.sql(
                    "SELECT path, purpose, flows, model, fingerprint FROM code_modules"
                    " WHERE project_no = :project AND tree_no = ?"
                ),
                (self._lookup.tree_no,),
            )
        return {
            from_storable(path): Described(
                from_storable(purpose), _flows(json.loads(flows)), model, fingerprint=fingerprint
            )
            for path, purpose, flows, model, fingerprint in rows
        }

    def put(self, found: Mapping[str, Described]) -> None:
        """Keep what was said of some folders."""
        version = load_prompt(_PROMPTS, "describe_system").version
        with self._lookup.database.write(is_derived=True) as session:
            for path, each in found.items():
                self._put_one(session, path, each, version=version)

    def _put_one(self, session: Session, path: str, each: Described, version: int) -> None:
        session.run(
            self._lookup.sql(
                "INSERT INTO code_modules (project_no, tree_no, path, purpose, flows, source, "
                "model, prompt_version,"
                " fingerprint, made_at) VALUES (:project, ?, ?, ?, ?, 'model', ?, ?, ?, ?)"
                " ON CONFLICT (tree_no, path) DO UPDATE SET purpose = excluded.purpose, flows = "
                "excluded.flows,"
                " source = excluded.source, model = excluded.model, prompt_version = "
                "excluded.prompt_version,"
                " fingerprint = excluded.fingerprint, made_at = excluded.made_at"
            ),
            (
                self._lookup.tree_no,
                to_storable(path),
                to_storable(each.purpose),
                json.dumps(each.flows),
                each.model,
                version,
                each.fingerprint,
                self._clock.now_ms(),
            ),
        )


def with_words(
    modules: Sequence[CodeModule], said: Mapping[str, Described], prints: Mapping[str, str]
) -> list[CodeModule]:
    """Modules with what a model said of them; what it said of other names is told as stale."""
    found = []
    for module in modules:
        each = said.get(module.path)
        if each is None:
            found.append(module)
            continue
        found.append(
            replace(
                module,
                purpose=each.purpose,
                source="model",
                flows=each.flows or module.flows,
                is_stale=each.fingerprint != prints.get(module.path),
            )
        )
    return found


def describe(
    models: Models, modules: Sequence[CodeModule], prints: Mapping[str, str]
) -> dict[str, Described]:
    """What the model says of some modules, in one call. Raises ``ModelError``; what it leaves out
    is left out.
    """
    mark = secrets.token_hex(4)
    told = neutralized("\n\n".join(_told(module) for module in modules))
    prompt = load_prompt(_PROMPTS, "describe").render({"mark": mark, "folders": told})
    system = load_prompt(_PROMPTS, "describe_system").text
    reply = models.complete(
        ChatRequest(prompt, system, max_output_tokens=_OUTPUT_TOKENS), purpose=PURPOSE
    )
    name = models.names[0] if models.names else None
    known = {module.path for module in modules}
    return {
        path: Described(purpose, flows, name, fingerprint=prints.get(path, ""))
        for path, purpose, flows in read_reply(reply.text)
        if path in known
    }


def read_reply(text: str) -> Iterable[tuple[str, str, tuple[tuple[str, ...], ...]]]:
    """Path, purpose and flows of each folder in a reply. ``BadReplyError`` when it is no such
    object.
    """
    found = _OBJECT.search(text)
    try:
        folders = json.loads(found[0])["folders"] if found else None
    except (ValueError, KeyError, TypeError, RecursionError):
        folders = None
    if not isinstance(folders, list):
        raise BadReplyError(
            "The model did not answer with the JSON it was asked for. Ask again.",
            reason="unreadable",
        )
    read = []
    for each in folders:
        if (
            isinstance(each, dict)
            and isinstance(each.get("path"), str)
            and isinstance(each.get("purpose"), str)
        ):
            purpose = redact(" ".join(each["purpose"].split())).text[:LONGEST_PURPOSE]
            if purpose:
                read.append((each["path"].strip(), purpose, _flows(each.get("flows"))))
    if not read:
        log.warning("modules.undescribed", reason="empty")
    return read


def _flows(given: Any) -> tuple[tuple[str, ...], ...]:
    flows = given if isinstance(given, list | tuple) else ()
    lists = [
        flow[:LONGEST_FLOW] for flow in flows if isinstance(flow, list | tuple) and len(flow) > 1
    ]
    return tuple(
        tuple(redact(str(name)[:LONGEST_PURPOSE]).text for name in flow)
        for flow in lists[:MOST_FLOWS]
    )


def _told(module: CodeModule) -> str:
    lines = [
        f"folder {module.path} ({module.files} files, {module.symbols} names)",
        f"says: {module.purpose}",
    ]
    lines += [
        f"defines: {node.signature or node.kind + ' ' + node.qualname} in {node.path}"
        + (f" ({node.doc.splitlines()[0][:120]})" if node.doc else "")
        for node in module.central
    ]
    lines += [f"uses: {', '.join(path for path, _ in module.uses)}"] if module.uses else []
    lines += [f"used by: {', '.join(path for path, _ in module.used_by)}"] if module.used_by else []
    lines += [f"entered at: {', '.join(module.entry_points)}"] if module.entry_points else []
    lines += [f"calls: {' -> '.join(flow)}" for flow in module.flows]
    return "\n".join(lines)
