"""Contradictions: found when they are plain, passed over when they are not."""

from __future__ import annotations

import pytest

from smara.knowledge.contradictions import compare, find_contradiction, tells_of_change
from smara.knowledge.models import TypedMemory
from smara.knowledge.statements import parse_statement

SURE = [
    ("Use pnpm 9 for installing packages", "Use pnpm 8 for installing packages", "changed"),
    ("Use pnpm, not npm, for installing packages", "Use npm for installing packages", "denied"),
    ("Use spaces for indentation", "Use tabs for indentation", "changed"),
    ("The API listens on port 8081", "The API listens on port 8080", "changed"),
    ("Auth tests do not need Redis", "Auth tests need Redis", "denied"),
    ("Auth tests need Redis", "Auth tests don't need Redis", "denied"),
    ("Sessions are stored in Postgres", "Sessions are stored in Redis", "changed"),
    ("JWT tokens expire after 24 hours", "JWT tokens expire after 12 hours", "changed"),
    ("Enable strict mode in tsconfig.json", "Disable strict mode in tsconfig.json", "changed"),
    ("The default branch is `main`", "The default branch is `master`", "changed"),
    (
        "We migrated from Redis to Postgres for session storage",
        "Session storage is in Redis",
        "replaced",
    ),
    (
        "Prefer composition over inheritance in models",
        "Prefer inheritance over composition in models",
        "denied",
    ),
    (
        "Logs are written to stderr, never to stdout",
        "Logs are written to stdout, never to stderr",
        "denied",
    ),
    ("Set the timeout to 30s in client.py", "Set the timeout to 60s in client.py", "changed"),
]
NONE = [
    ("The auth module uses Redis", "The billing module uses Redis"),
    ("The auth module uses Redis", "The auth module uses bcrypt"),
    ("The test on line 40 of auth.py fails", "The test on line 50 of auth.py fails"),
    ("Step 4 of the deploy is slow", "Step 3 of the deploy is slow"),
    ("The API supports Python 3.12", "The API supports Python 3.11"),
    ("Never commit secrets to git", "Commit often to git"),
    ("Python 3.12 is supported", "Python 3.11 is supported"),
    ("Tests for auth live in tests/auth", "Tests for billing live in tests/billing"),
    ("Run `make test` before pushing", "Run `make check` before pushing"),
    ("The auth module is central", "The auth module is complex"),
    ("auth depends on billing", "billing depends on auth"),
    (
        "The cache expires in CI when module_7 runs first",
        "The cache expires in staging when module_9 runs first",
    ),
    ("Works without Redis on port 6379", "Works with Redis on port 6379"),
    ("Is Redis needed for auth tests?", "Redis is not needed for auth tests"),
    ("No tool is executed automatically", "They never execute tools"),
    ("", "anything"),
]


def memory(content: str, **fields: object) -> TypedMemory:
    given = {"type": "decision", "files": (), "modules": (), "data": {}, **fields}
    return TypedMemory(
        "id",
        "m-1",
        given["type"],
        content=content,
        confidence=0.8,
        tags=(),
        files=given["files"],
        modules=given["modules"],
        scope="global",
        source="agent_explicit",
        visibility="project",
        created_at=0,
        created_by="ann",
        updated_at=0,
        version=1,
        data=given["data"],
    )


@pytest.mark.parametrize(("new", "old", "sign"), SURE)
def test_a_plain_contradiction_is_found_with_its_sign(new, old, sign):
    found = compare(parse_statement(new), parse_statement(old))
    assert found is not None
    assert (found.sign, found.is_sure) == (sign, True)
    assert found.why


@pytest.mark.parametrize(("new", "old"), NONE)
def test_what_may_both_be_true_is_left_alone(new, old):
    assert compare(parse_statement(new), parse_statement(old)) is None
    assert compare(parse_statement(old), parse_statement(new)) is None


def test_another_choice_for_the_same_purpose_is_not_sure():
    found = compare(
        parse_statement("Use nose for running tests"),
        parse_statement("Use pytest for running tests"),
    )
    assert found is not None
    assert not found.is_sure


def test_the_same_words_never_contradict_themselves():
    for new, old, _ in SURE:
        assert compare(parse_statement(new), parse_statement(new)) is None
        assert compare(parse_statement(old), parse_statement(old)) is None


def test_memories_about_other_files_or_modules_do_not_contradict():
    new, old = "The API port is 8081", "The API port is 8080"
    assert find_contradiction(memory(new), memory(old)) is not None
    assert find_contradiction(memory(new, files=("a.py",)), memory(old, files=("b.py",))) is None
    assert find_contradiction(memory(new, modules=("a",)), memory(old, modules=("b",))) is None
    assert find_contradiction(memory(new, modules=("a",)), memory(old)) is not None


def test_episodes_do_not_contradict_each_other():
    new, old = "The big cache holds 8 entries", "The big cache holds 9 entries"
    assert find_contradiction(memory(new), memory(old)) is not None
    assert find_contradiction(memory(new, type="dead_end"), memory(old, type="dead_end")) is None
    assert (
        find_contradiction(memory(new, type="error_pattern"), memory(old, type="decision")) is None
    )


def test_two_counts_of_one_module_are_versions_of_one_memory():
    data = {"module": "auth", "average_tokens": 10, "session_count": 3}
    new = memory("auth costs 12k", type="context_cost", data={**data, "average_tokens": 12})
    found = find_contradiction(new, memory("auth is cheap", type="context_cost", data=data))
    assert found is not None
    assert found.sign == "version"


@pytest.mark.parametrize(
    "text", ["moved from A to B", "no longer uses A", "replaced A with B", "B instead of A"]
)
def test_what_tells_of_its_own_change_is_recognized(text):
    assert tells_of_change(text)
    assert not tells_of_change("uses A and B")
