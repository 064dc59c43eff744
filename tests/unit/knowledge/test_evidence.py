"""Evidence and paths: written in a line, read back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.errors import InvalidInputError
from smara.knowledge.models import Evidence, TypedMemory
from smara.knowledge.prepare import MAX_QUOTE_LENGTH, clean_evidence, clean_path
from smara.knowledge.reader import names_of


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        (
            "src/a.py@3f2a9c1:10-20",
            Evidence(path="src/a.py", commit="3f2a9c1", first_line=10, last_line=20),
        ),
        ("src/a.py:7", Evidence(path="src/a.py", first_line=7, last_line=7)),
        ("src/a.py", Evidence(path="src/a.py")),
        ("src/a.py@3f2a9c1", Evidence(path="src/a.py", commit="3f2a9c1")),
        (
            "node_modules/@scope/pkg/index.js:3",
            Evidence(path="node_modules/@scope/pkg/index.js", first_line=3, last_line=3),
        ),
        ("docs/a b.md:1-2", Evidence(path="docs/a b.md", first_line=1, last_line=2)),
        ("message:0199", Evidence(message_id="0199")),
        ("observation:0199", Evidence(observation_id="0199")),
        ("commit:3f2a9c1", Evidence(commit="3f2a9c1")),
    ],
)
def test_a_place_is_read_from_one_line_and_written_as_one(text, evidence):
    assert Evidence.parse(text) == evidence
    assert str(evidence) == text


@given(
    st.from_regex(r"[a-z]{1,8}(/[a-z_]{1,8}){0,3}\.[a-z]{1,3}", fullmatch=True),
    st.none() | st.from_regex(r"[0-9a-f]{7,40}", fullmatch=True),
    st.none() | st.tuples(st.integers(0, 9_999), st.integers(0, 9_999)),
)
def test_every_place_survives_being_written(path, commit, lines):
    first, last = lines or (None, None)
    evidence = Evidence(path=path, commit=commit, first_line=first, last_line=last)
    assert Evidence.parse(str(evidence)) == evidence


def test_a_quotation_alone_is_evidence_and_is_cut_when_long():
    (found,) = clean_evidence([Evidence(quote="x" * 5_000)])
    assert found.quote is not None
    assert len(found.quote) == MAX_QUOTE_LENGTH
    assert str(found) == "quotation"


def test_evidence_may_be_given_as_json_and_twice_is_once():
    found = clean_evidence([{"path": "./a.py", "first_line": 3}, "a.py:3"])
    assert found == (Evidence(path="a.py", first_line=3, last_line=3),)


@pytest.mark.parametrize(
    "bad", ["a.py", [Evidence()], [{"nose": 1}], [3], [Evidence(path="a", first_line=True)]]
)
def test_what_is_no_evidence_is_refused(bad):
    with pytest.raises(InvalidInputError):
        clean_evidence(bad)


@pytest.mark.parametrize(
    ("given_path", "path"),
    [("./a/b.py", "a/b.py"), ("a\\b.py", "a/b.py"), ("a/b/", "a/b"), ("././a", "a"), ("/", "/")],
)
def test_paths_are_compared_in_one_form(given_path, path):
    assert clean_path(given_path) == path


def test_a_file_is_known_by_itself_and_the_folders_around_it():
    assert names_of("src/auth/login.py", None) == ["src/auth/login.py", "src/auth", "src"]
    assert names_of("/home/ann/app/src/a.py", "/home/ann/app/") == ["src/a.py", "src"]
    assert "src/a.py" in names_of("/home/ann/app/src/a.py", None)
    assert "a.py" not in names_of("/home/ann/app/src/a.py", None)


def test_a_label_is_the_citation_or_the_beginning_of_the_words():
    memory = TypedMemory(
        "id",
        "m-1",
        "gotcha",
        content="word " * 30,
        confidence=0.8,
        tags=(),
        files=(),
        modules=(),
        scope="module",
        source="agent_explicit",
        visibility="project",
        created_at=0,
        created_by="ann",
        updated_at=0,
        version=1,
    )
    assert len(memory.label) <= 40
    assert memory.label.endswith("…")
