"""Read the archive of a Hindsight bank, or its listed memories.

The archive is a ZIP with one JSON file for each document, its text and the facts extracted from
it, and files for what the bank made of them. A cause of a fact is kept in its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zipfile import BadZipFile, ZipFile

from smara.privacy.foreign.records import (
    Candidate,
    ForeignFact,
    ForeignFormat,
    ForeignMessage,
    ForeignRecord,
    Malformed,
    Unread,
    digest_of,
    objects_of,
    read_document,
    read_entry,
    text_of,
    texts_of,
    time_of,
)

_TIMES = ("mentioned_at", "occurred_start", "event_date", "date", "created_at")
_NEWEST = 1
_LEFT = {
    "banks.json": "settings of the bank",
    "webhooks.json": "settings of the bank",
    "knowledge_pages.json": "the order of pages, whose texts are imported",
}


def _recognizes(candidate: Candidate) -> bool:
    return "source_bank_id" in candidate.manifest or {"fact_type", "text"} <= candidate.keys


def _read(path: str) -> Iterator[ForeignRecord]:
    if "fact_type" in Candidate(path).keys:
        document = read_document(path)
        items = document.get("items") if isinstance(document, dict) else document
        for place, record in objects_of(items, "memory"):
            yield _fact(record, place, "", text_of(record, place, "id", needed=False))
        return
    try:
        with ZipFile(path) as archive:
            yield from _archive(archive)
    except BadZipFile as error:
        raise Malformed(path, str(error)) from error


def _archive(archive: ZipFile) -> Iterator[ForeignRecord]:
    manifest = read_entry(archive, "manifest.json")
    version = manifest.get("schema_version", _NEWEST) if isinstance(manifest, dict) else None
    if not isinstance(version, int) or version > _NEWEST:
        raise Malformed("manifest.json", f"version {version} of the archive is not known")
    bank = text_of(manifest, "manifest.json", "source_bank_id")
    names = sorted(archive.namelist())
    for name in names:
        if name.startswith("documents/") and name.endswith(".json"):
            yield from _document(read_entry(archive, name), name, bank)
    for name in names:
        if name == "observations.json":
            for place, record in objects_of(read_entry(archive, name), name):
                yield _fact(record, place, bank, "", kind="observation")
        elif name == "mental_models.json":
            for place, record in objects_of(read_entry(archive, name), name):
                yield _page(record, place, bank)
        elif name == "directives.json":
            for place, record in objects_of(read_entry(archive, name), name):
                yield _fact(record, place, bank, text_of(record, place, "id"), kind="directive")
        elif name in _LEFT or name.startswith("history/"):
            reason = _LEFT.get(name, "history of the bank's own work")
            for _ in objects_of(read_entry(archive, name), name):
                yield Unread(reason, bank)


def _document(document: Any, place: str, bank: str) -> Iterator[ForeignRecord]:
    if not isinstance(document, dict):
        raise Malformed(place, "it should be an object")
    name = text_of(document, place, "id")
    at = time_of(document, place, "created_at")
    text = text_of(document, place, "original_text", needed=False)
    if not text:
        pieces = sorted(
            (record.get("chunk_index", 0), text_of(record, where, "chunk_text"))
            for where, record in objects_of(document.get("chunks"), f"{place} chunk")
        )
        text = "\n".join(piece for _, piece in pieces)
    if text:
        yield ForeignMessage(
            f"{name}-{digest_of(text)}", name, text, at_ms=at, part=bank, kind="document"
        )
    records = list(objects_of(document.get("facts"), f"{place} fact"))
    for where, record in records:
        fact = _fact(record, where, bank, f"{name}-{digest_of(text_of(record, where, 'text'))}")
        yield ForeignFact(
            fact.id,
            fact.text + _causes(record, where, records),
            at if fact.at_ms is None else fact.at_ms,
            tags=(*fact.tags, *texts_of(document, place, "tags")),
            part=bank,
            is_personal=False,
            messages=(f"{name}-{digest_of(text)}",) if text else (),
        )


def _fact(
    record: Mapping[str, Any], place: str, bank: str, name: str, kind: str = ""
) -> ForeignFact:
    text = text_of(record, place, "text", "content")
    sort = kind or text_of(record, place, "fact_type", needed=False)
    return ForeignFact(
        name or f"{sort}-{digest_of(text)}",
        text,
        time_of(record, place, *_TIMES),
        type="requirement" if kind == "directive" else None,
        tags=(
            *((sort,) if sort else ()),
            *texts_of(record, place, "tags"),
            *texts_of(record, place, "entities"),
        ),
        part=bank,
        is_personal=False,
    )


def _causes(
    record: Mapping[str, Any], place: str, records: Sequence[tuple[str, Mapping[str, Any]]]
) -> str:
    """Return the words for the facts of the same document that a fact names as causes."""
    found = []
    for where, relation in objects_of(record.get("causal_relations"), f"{place} relation"):
        target = relation.get("target_fact_index")
        if not isinstance(target, int) or not 0 <= target < len(records):
            raise Malformed(where, f"target_fact_index {target!r} names no fact")
        kind = text_of(relation, where, "relation_type").replace("_", " ")
        found.append(f" ({kind}: {text_of(records[target][1], records[target][0], 'text')})")
    return "".join(found)


def _page(record: Mapping[str, Any], place: str, bank: str) -> ForeignRecord:
    text = text_of(record, place, "content", "description", needed=False)
    if not text:
        return Unread("a mental model without text", bank)
    name = text_of(record, place, "id", "name")
    title = text_of(record, place, "name", needed=False)
    return ForeignMessage(
        f"{name}-{digest_of(text)}",
        f"mental-model/{name}",
        text,
        at_ms=time_of(record, place, "last_refreshed_at", "updated_at", "created_at"),
        title=title or None,
        part=bank,
        kind="mental model",
    )


HINDSIGHT = ForeignFormat("hindsight", "Hindsight", _recognizes, _read)
