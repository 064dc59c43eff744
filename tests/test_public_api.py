"""What a program may rely on: the names, their words of explanation, and the shape of the doors."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys

import pytest

import smara
from smara.memory import Memory

NAMES = [
    "Answer", "AsyncMemory", "Hit", "HostEvent", "Injection", "Memory", "Message", "NewMessage",
    "NewThread",
    "Part", "Pointer", "Receipt", "SmaraError", "Thread", "__version__", "connect", "copy_store",
    "open", "open_async",
]  # fmt: skip
ATTRIBUTES = [
    "behavior", "browse", "close", "code", "code_knowledge", "commits", "compact", "compactions",
    "complete", "context",
    "decisions",
    "embeddings", "feed", "frameworks", "history", "in_project", "internals", "jobs", "links",
    "memories", "messages", "models",
    "moments", "observations", "pack", "path", "privacy", "project", "projects", "retention",
    "search",
    "search_memories",
    "search_observations", "search_pattern", "search_tasks", "search_threads", "settings", "status",
    "tasks", "threads", "transcripts",
    "used_rooms", "warnings", "with_settings", "worker", "working",
]  # fmt: skip
"""The public rooms and verbs; all else is behind ``internals``."""
HEAVY = (
    "apsw",
    "psycopg",
    "rich",
    "click",
    "re2",
    "splintr",
    "Stemmer",
    "sqlite3",
    "asyncio",
    "platformdirs",
    "pydantic",
    "jsonschema",
)


def test_the_package_exports_these_names_and_no_others():
    assert sorted(smara.__all__) == NAMES
    assert dir(smara) == NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if name != "__version__"])
def test_every_exported_name_is_there_and_explains_itself(name):
    assert (getattr(smara, name).__doc__ or "").strip()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="walrus"):
        smara.walrus  # noqa: B018


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert smara.__version__ == version("smara")


def test_importing_smara_loads_nothing_heavy():
    code = f"import sys, smara; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_a_sqlite_store_loads_neither_the_command_line_nor_postgresql(tmp_path):
    heavy = ("psycopg", "click", "rich", "asyncio")
    code = f"""import sys, smara
smara.open({str(tmp_path / "s.db")!r}).close()
print([name for name in {heavy!r} if name in sys.modules])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_command_that_reads_prepares_no_brief_where_none_is_used(tmp_path):
    code = f"""import sys
sys.argv = ["smara", "--db", {str(tmp_path / "s.db")!r}, "--project", "p", "tasks", "ready"]
from smara.surfaces.cli import main
try:
    main()
finally:
    print([name for name in sys.modules if name.endswith("precompute")], file=sys.stderr)"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"SMARA_HOME": str(tmp_path / "home")},
    )
    assert done.stderr.splitlines()[-1] == "[]"


def parameters(function):
    return {
        name: parameter.kind.name
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
    }


def test_open_takes_a_path_or_a_url_first():
    assert next(iter(parameters(smara.open))) == "path_or_url"
    assert inspect.signature(smara.open).parameters["path_or_url"].default is None


def test_the_doors_of_the_issue_take_what_the_issue_says(tmp_path):
    with smara.open(tmp_path / "s.db") as memory:
        assert isinstance(memory, Memory)
        assert {"thread_id", "role", "content", "client_id", "task_id", "metadata"} <= set(
            parameters(memory.messages.add)
        )
        assert {"thread_id", "messages"} <= set(parameters(memory.messages.add_many))
        assert {"thread_id", "limit", "before", "after"} <= set(parameters(memory.messages.list))
        assert list(parameters(memory.search))[:2] == ["query", "limit"]
        assert {"add", "put", "get", "find", "list", "update"} <= set(dir(memory.threads))


def test_messages_are_added_by_name_never_by_position(tmp_path):
    with smara.open(tmp_path / "s.db") as memory:
        assert set(parameters(memory.messages.add).values()) == {"KEYWORD_ONLY"}


def test_a_hit_and_a_message_have_the_fields_of_the_issue(tmp_path):
    with smara.open(tmp_path / "s.db") as memory:
        message = memory.messages.add(thread_id="t", role="user", content="the walrus")
        hit = memory.search("walrus", limit=5, sources=["messages"])[0]
    assert message.raw_content == hit.content == "the walrus"
    assert hit.score > 0
    assert hit.why


def test_a_closed_memory_says_so(tmp_path):
    memory = smara.open(tmp_path / "s.db")
    memory.close()
    memory.close()
    with pytest.raises(smara.SmaraError, match="closed"):
        memory.threads.list()


def test_every_error_has_a_code_of_its_own_and_a_sentence():
    from smara import errors

    kinds = [
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, errors.SmaraError)
    ]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)
    assert all((kind.__doc__ or "").strip() for kind in kinds)


def test_an_error_carries_its_facts_as_attributes():
    from smara.errors import NotFoundError

    error = NotFoundError("There is no such thread.", thread_id="t")
    assert (error.thread_id, error.code, error.is_retryable, str(error)) == (
        "t",
        "not_found",
        False,
        "There is no such thread.",
    )
    with pytest.raises(AttributeError):
        error.walrus  # noqa: B018


def test_attributes_of_a_memory_are_its_rooms_and_its_wiring_is_behind_one_name(tmp_path):
    with smara.open(tmp_path / "s.db") as memory:
        assert [name for name in dir(memory) if name.startswith("_") and "__" not in name] == [
            "_rooms"
        ]
        assert sorted(name for name in dir(memory) if not name.startswith("_")) == ATTRIBUTES


@pytest.mark.parametrize("name", ["search", "search_threads", "search_tasks", "search_memories"])
def test_help_of_a_search_lists_its_filters(name):
    method = getattr(Memory, name)
    assert "VAR_KEYWORD" not in parameters(method).values()
    documented = (inspect.getdoc(method) or "").partition("Args:")[2]
    assert [each for each in parameters(method) if f"    {each}: " not in documented] == []


WITHIN = {"internals", "worker"}
"""Attributes that are there for the doors, not for programs."""
_SAYS_RESULT = re.compile(
    r"(Return|Yield|List|Count|Find|Iterate|Search|Read)\b|[^\n]*\b(and|;) return\b|.*^Returns:",
    re.MULTILINE | re.DOTALL,
)


def public_methods(memory):
    """Yield the name, the method and the class of everything a program may call."""
    for name in sorted(set(dir(memory)) - WITHIN):
        room = getattr(memory, name)
        if name.startswith("_"):
            continue
        if inspect.ismethod(room):
            yield name, room, Memory
        elif type(room).__module__.startswith("smara"):
            for verb in dir(type(room)):
                if not verb.startswith("_") and inspect.isfunction(getattr(type(room), verb)):
                    yield f"{name}.{verb}", getattr(room, verb), type(room)


def undescribed(method, owner):
    """Return the parameters of a method that no docstring describes, and ``return``."""
    text = inspect.getdoc(method) or ""
    shared = "\n".join(kind.__doc__ or "" for kind in owner.__mro__[:-1])
    signature = inspect.signature(method)
    missing = [
        name
        for name in signature.parameters
        if not re.search(rf"(?m)^ +\*{{0,2}}{name}: \S", f"{text}\n{shared}")
    ]
    if signature.return_annotation not in ("None", None) and not _SAYS_RESULT.match(text):
        missing.append("return")
    return missing


def test_every_public_method_says_what_it_takes_and_what_it_returns(tmp_path):
    with smara.open(tmp_path / "s.db") as memory:
        methods = list(public_methods(memory))
        lacking = {name: undescribed(method, owner) for name, method, owner in methods}
    assert {"tasks.claim", "messages.add", "memories.used", "behavior.edges", "search"} <= set(
        lacking
    )
    assert {name: missing for name, missing in lacking.items() if missing} == {}


def test_a_parameter_without_a_word_of_explanation_is_found():
    class Room:
        """A room.

        Arguments that many methods share:
            place: Where it is.
        """

        def claim(self, place: str, limit: int) -> int:
            """Claim a place."""
            return limit

    assert undescribed(Room().claim, Room) == ["limit", "return"]
