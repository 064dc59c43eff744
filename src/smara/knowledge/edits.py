"""Edits as columns: which fields of a memory can be changed by hand, and how each is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smara.core.checks import one_of
from smara.errors import InvalidInputError
from smara.knowledge import prepare
from smara.knowledge.models import SCOPES, VISIBILITIES, TypedMemory

EDITABLE = (
    "content", "type", "confidence", "tags", "files", "modules", "scope", "visibility", "citation",
    "half_life_days",
    "data", "commit", "evidence", "work_unit", "methodology", "target_node_id", "impacted_node_ids",
    "chunk",
)  # fmt: skip


def edited_fields(memory: TypedMemory, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes as columns; ``None`` leaves a field as it is, and an empty text clears one that may
    be empty.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    unknown = sorted(set(given) - set(EDITABLE))
    if unknown:
        raise InvalidInputError(
            f"{', '.join(unknown)} cannot be edited. Edit one of {', '.join(EDITABLE)}."
        )
    fields: dict[str, Any] = {}
    for name, value in given.items():
        fields.update(_column(name, value))
    kind = fields.get("type", memory.type)
    if "data" in given or kind != memory.type:
        merged = {**(memory.data if kind == memory.type else {}), **(given.get("data") or {})}
        fields["data"] = prepare.clean_data(kind, merged, is_strict=False)
    return fields


def _column(name: str, value: Any) -> dict[str, Any]:
    if name == "chunk":
        return prepare.clean_chunk(value or None)
    if name in _TEXTS:
        return {name: prepare.clean_optional(value, name, 500)}
    if name in _CLEANED:
        column, clean = _CLEANED[name]
        return {column: clean(value)}
    return {}  # data, which depends on the type


_TEXTS = ("methodology", "target_node_id")
_CLEANED: dict[str, tuple[str, Any]] = {
    "content": ("content", prepare.clean_content),
    "type": ("type", prepare.clean_type),
    "confidence": ("confidence", lambda value: prepare.clean_fraction(value, "confidence")),
    "tags": ("tags", lambda value: list(prepare.clean_tags(value))),
    "files": ("files", lambda value: list(prepare.clean_files(value))),
    "modules": ("modules", lambda value: list(prepare.clean_list(value, "modules"))),
    "scope": ("scope", lambda value: one_of(value, SCOPES, "scope")),
    "visibility": ("visibility", lambda value: one_of(value, VISIBILITIES, "visibility")),
    "citation": ("citation", prepare.clean_citation),
    "half_life_days": ("half_life_days", lambda value: prepare.clean_half_life(value or None)),
    "commit": ("commit_sha", prepare.clean_commit),
    "evidence": ("evidence",
    lambda value: [prepare.plain_evidence(each) for each in prepare.clean_evidence(value)]),
    "work_unit": ("work_unit", lambda value: prepare.clean_work_unit(value or None)),
    "impacted_node_ids": (
        "impacted_node_ids", lambda value: list(prepare.clean_list(value, "impacted_node_ids",
        500)),
    ),
}  # fmt: skip
