"""Check and redact the fields of a memory before it is stored."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from smara.core.extract import shorten
from smara.core.paths import FILE_EXTENSIONS, PATH_IN_TEXT
from smara.core.scope import require_id
from smara.core.startup.regex import regex
from smara.core.validate import invalid, one_of
from smara.errors import InvalidInputError
from smara.knowledge.decay import FileHistory
from smara.knowledge.kinds import KINDS, checked_data
from smara.knowledge.models import (
    CHUNK_TYPES,
    MAX_CITATION_LENGTH,
    RELATION_TYPES,
    SCOPES,
    SOURCES,
    TYPES,
    VISIBILITIES,
    Chunk,
    Evidence,
    MemorySource,
    MemoryType,
    NewMemory,
    Relation,
    TypedMemory,
    WorkUnit,
)
from smara.knowledge.store import CHUNK, plain_evidence
from smara.secrets import redact, redact_value
from smara.secrets.redact import MAX_LINE_LENGTH, clean_line, clean_list

MAX_CONTENT_LENGTH = 8_000
MAX_QUOTE_LENGTH = 2_000
MAX_EVIDENCE = 100
MAX_ITEMS = 200
MAX_PATH_LENGTH = 1_000
_MOST_NAMED = 8
_COMMIT = regex(r"[0-9A-Za-z][0-9A-Za-z._/-]{3,127}")
_WITHOUT_END = regex(r"(?<![\w/.@-])(?:\.[a-z][\w-]{2,30}|[A-Z][A-Za-z]{3,30})(?![\w/-]|\.\w)")
"""A word that may be a file's name without an end: Makefile, .gitignore."""
_TAINT = regex(r"[a-z][a-z_]{0,39}")

CONFIDENCE: Mapping[MemorySource, float] = {
    "user_taught": 0.95, "said": 0.9, "agent_explicit": 0.8, "imported": 0.8, "qa_auto": 0.8,
    "commit_auto": 0.75, "mcp_auto": 0.75,
    "observer_inferred": 0.7,
}  # fmt: skip
"""What a memory is worth by default: a person's word most, what was worked out from behavior
least.
"""

INFERRED: frozenset[MemorySource] = frozenset(
    {"observer_inferred", "qa_auto", "mcp_auto", "commit_auto"}
)
"""Sources that are no statement of anybody: they need evidence, and the whole shape of their
type.
"""


def clean_type(value: object) -> MemoryType:
    return one_of(value, TYPES, "type")  # type: ignore[arg-type]  # one of TYPES


def clean_content(content: object) -> str:
    """The statement itself: a text that is not blank."""
    if not isinstance(content, str):
        raise invalid(
            f"content must be a text, not {type(content).__name__}",
            "Give a sentence or two.",
            "content",
        )
    text = content.strip()
    if not text:
        raise invalid(
            "A memory needs a content", "Say in a sentence what is to be remembered.", "content"
        )
    if len(text) > MAX_CONTENT_LENGTH:
        brief = (
            f"The content has {len(text):,} characters; at most {MAX_CONTENT_LENGTH:,} are stored"
        )
        raise invalid(
            brief, "Say it in a sentence or two, and give the rest as evidence.", "content"
        )
    return redact(text).text


def clean_optional(value: object, what: str, longest: int = MAX_LINE_LENGTH) -> str | None:
    """Return one line of text, or None for an empty one."""
    return None if value is None or value == "" else clean_line(value, what, longest)[:longest]


def plain_path(path: str) -> str:
    r"""Return a path in the form in which paths are compared.

    >>> plain_path("./src\\auth/"), plain_path("src/auth.py")
    ('src/auth', 'src/auth.py')
    """
    line = path.strip().replace("\\", "/")
    while line.startswith("./"):
        line = line[2:]
    return line.rstrip("/") or line


def clean_path(value: object, what: str = "files") -> str:
    """Return a caller's path, checked and redacted."""
    return plain_path(clean_line(value, what, MAX_PATH_LENGTH))


def named_files(text: str, files: FileHistory | None) -> list[str]:
    """Return the files of the project that a statement names.

    A path counts if the file is there, and a name or the end of a path if it means one file alone.
    Where that is unknown, it needs a folder and the end of a file's name. What git knew and is
    gone is no file any more.

    >>> named_files("Totals in src/bill.py:10 are cents, see example.com/a.py", None)
    ['src/bill.py']
    """
    found = {
        name: None
        for word in dict.fromkeys(_WITHOUT_END.findall(text))
        if files is not None and (name := files.called(word))
    }
    for match in PATH_IN_TEXT.finditer(text):
        path = plain_path(match["path"].rstrip("."))
        first, slash, _ = path.partition("/")
        has_end = path.rpartition(".")[2].lower() in FILE_EXTENSIONS
        if not first or first == ".." or not (slash or has_end):
            continue
        is_there = files.exists(path) if files is not None else None
        if is_there is None and files is not None and (name := files.called(path)):
            found[name] = None
        elif is_there or (is_there is None and slash and has_end and "." not in first[1:]):
            found[path] = None
    return list(found)[:_MOST_NAMED]


def clean_fraction(value: object, what: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise invalid(f"{what} must be a number from 0 to 1; got {value!r}", "1 is certain.", what)
    return float(value)


def clean_half_life(value: object) -> float | None:
    if value is None:
        return None
    is_number = (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    )
    if not is_number or not 0 < value <= 36_500:  # type: ignore[operator]  # checked before
        hint = "Give days, or pin the memory so that it never fades."
        raise invalid(
            f"half_life_days must be a number above 0; got {value!r}", hint, "half_life_days"
        )
    return float(value)  # type: ignore[arg-type]


def clean_commit(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _COMMIT.fullmatch(value):
        raise invalid(
            f"commit must be the name of a commit; got {value!r}", "Give its hash.", "commit"
        )
    return value


def clean_taint(values: object) -> tuple[str, ...]:
    """Kinds of outside input, as words."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise invalid(
            "taint must be a list of words", "Use web, mcp, imported, other, tool or file.", "taint"
        )
    found = set()
    for value in values:
        if not isinstance(value, str) or not _TAINT.fullmatch(value):
            raise invalid(
                f"a taint must be one small word; got {value!r}",
                "Use web, mcp, tool or file.",
                "taint",
            )
        found.add(value)
    return tuple(sorted(found))


def clean_evidence(values: object) -> tuple[Evidence, ...]:
    """Return pieces of evidence, checked; texts are parsed."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise invalid(
            "evidence must be a list",
            "Give a list of messages, places in files or quotations.",
            "evidence",
        )
    found = dict.fromkeys(_one_evidence(value) for value in values)
    if len(found) > MAX_EVIDENCE:
        raise invalid(
            f"{len(found)} pieces of evidence are too many",
            f"Give at most {MAX_EVIDENCE}.",
            "evidence",
        )
    return tuple(found)


def _one_evidence(value: Any) -> Evidence:
    given = Evidence.parse(value.strip()) if isinstance(value, str) else value
    if isinstance(given, Mapping):
        unknown = sorted(set(given) - set(Evidence.__slots__))
        if unknown:
            raise invalid(
                f"evidence has no field {', '.join(map(str, unknown))}", "See Evidence.", "evidence"
            )
        given = Evidence(**given)
    if not isinstance(given, Evidence) or not any(
        (given.message_id, given.observation_id, given.path, given.commit, given.quote)
    ):
        hint = "Give a message id, path@commit:lines, a commit or a quotation."
        raise invalid(f"a piece of evidence says nothing: {value!r}", hint, "evidence")
    first, last = (
        given.first_line,
        given.last_line if given.last_line is not None else given.first_line,
    )
    for line in (first, last):
        if line is not None and (
            not isinstance(line, int) or isinstance(line, bool) or not 0 <= line < 2**31
        ):
            raise invalid(
                f"lines are whole numbers; got {line!r}",
                "Give the first and the last line.",
                "evidence",
            )
    quote = given.quote
    if quote is not None:
        if not isinstance(quote, str):
            raise invalid("a quotation must be a text", "Give the words themselves.", "evidence")
        quote = shorten(redact(quote.strip()).text, MAX_QUOTE_LENGTH)
    return Evidence(
        None if given.message_id is None else require_id(given.message_id, "message_id"),
        None
        if given.observation_id is None
        else require_id(given.observation_id, "observation_id"),
        None if given.path is None else clean_path(given.path, "evidence"),
        commit=clean_commit(given.commit),
        first_line=first,
        last_line=last,
        quote=quote,
    )


def clean_data(type_: MemoryType, data: object, is_strict: bool) -> dict[str, Any]:
    """The extended shape of a type, redacted."""
    checked = checked_data(type_, data if data is not None else {}, is_strict)  # type: ignore[arg-type]  # it checks
    cleaned: dict[str, Any] = json.loads(json.dumps(redact_value(checked)[0]))
    return cleaned


def clean_work_unit(unit: WorkUnit | None) -> dict[str, Any] | None:
    if unit is None:
        return None
    if not isinstance(unit, WorkUnit):
        raise invalid(
            "work_unit must be a WorkUnit", "Give its methodology and hierarchy.", "work_unit"
        )
    return {
        "methodology": clean_line(unit.methodology, "methodology"),
        "hierarchy": list(clean_list(unit.hierarchy, "hierarchy", MAX_ITEMS)),
        "label": clean_optional(unit.label, "label") or "",
    }


def clean_chunk(chunk: Chunk | None) -> dict[str, Any]:
    """The columns of a chunk, empty when there is none."""
    if chunk is None:
        return dict.fromkeys(CHUNK)
    if not isinstance(chunk, Chunk):
        raise invalid("chunk must be a Chunk", "Give its type and lines.", "chunk")
    return {
        "chunk_type": one_of(chunk.type, CHUNK_TYPES, "chunk type"),
        "chunk_start_line": chunk.first_line,
        "chunk_end_line": chunk.last_line,
        "context_prefix": clean_optional(chunk.context_prefix, "context_prefix", 500),
    }


def clean_relation(relation: object) -> Relation:
    """A relation to one memory or one file."""
    if not isinstance(relation, Relation):
        raise invalid(
            "a relation must be a Relation", "Give its type and a memory or a path.", "relations"
        )
    one_of(relation.type, RELATION_TYPES, "relation type")
    if (relation.memory_id is None) == (relation.path is None):
        raise invalid(
            "a relation is to a memory or to a file", "Give one of memory_id and path.", "relations"
        )
    return Relation(
        relation.type,
        relation.memory_id,
        None if relation.path is None else clean_path(relation.path, "relation path"),
        confidence=clean_fraction(relation.confidence, "confidence of a relation"),
        is_auto=bool(relation.is_auto),
    )


EDITABLE = (
    "content", "type", "confidence", "tags", "files", "modules", "scope", "visibility", "citation",
    "half_life_days",
    "data", "commit", "evidence", "work_unit", "methodology", "chunk",
)  # fmt: skip
_CLEAN: dict[str, Callable[[Any], Any]] = {
    "content": clean_content,
    "type": clean_type,
    "confidence": lambda value: clean_fraction(value, "confidence"),
    "tags": lambda value: sorted(clean_list(value, "tags", MAX_ITEMS)),
    "files": lambda value: list(clean_list(value, "files", MAX_ITEMS, clean_path)),
    "modules": lambda value: list(clean_list(value, "modules", MAX_ITEMS)),
    "scope": lambda value: one_of(value, SCOPES, "scope"),
    "visibility": lambda value: one_of(value, VISIBILITIES, "visibility"),
    "citation": lambda value: clean_optional(value, "citation", MAX_CITATION_LENGTH),
    "half_life_days": clean_half_life,
    "commit": clean_commit,
    "evidence": lambda value: [plain_evidence(each) for each in clean_evidence(value)],
    "work_unit": clean_work_unit,
    "methodology": lambda value: clean_optional(value, "methodology", 500),
}
"""How each field is checked and redacted; the data depend on the type, a chunk is four columns."""


def clean_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields but the data as columns, checked and redacted."""
    columns: dict[str, Any] = {}
    for name, value in given.items():
        if name == "chunk":
            columns |= clean_chunk(value)
        elif name in _CLEAN:
            columns["commit_sha" if name == "commit" else name] = _CLEAN[name](value)
    return columns


def fields_of(new: NewMemory) -> dict[str, Any]:
    """Return a new memory as columns, without its trust."""
    kind = clean_type(new.type)
    source: MemorySource = one_of(new.source, SOURCES, "source")
    given = {name: getattr(new, name) for name in EDITABLE}
    given["scope"] = new.scope or KINDS[kind].scope
    if new.confidence is None:
        given["confidence"] = CONFIDENCE[source]
    return {
        **clean_fields(given),
        "source": source,
        "data": clean_data(kind, new.data, source in INFERRED),
        "is_pinned": bool(new.is_pinned),
    }


def edited_fields(memory: TypedMemory, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes as columns.

    ``None`` leaves a field as it is, and an empty value clears one that may be empty.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    unknown = sorted(set(given) - set(EDITABLE))
    if unknown:
        raise InvalidInputError(
            f"{', '.join(unknown)} cannot be edited. Edit one of {', '.join(EDITABLE)}."
        )
    for name in ("half_life_days", "work_unit", "chunk"):
        if name in given:
            given[name] = given[name] or None
    fields = clean_fields(given)
    kind = fields.get("type", memory.type)
    if "data" in given or kind != memory.type:
        merged = {**(memory.data if kind == memory.type else {}), **(given.get("data") or {})}
        fields["data"] = clean_data(kind, merged, is_strict=False)
    return fields
