"""Fields of a mode and extractors: read one by one, and what cannot be read costs nothing else."""

from __future__ import annotations

import json

import pytest

from smara.errors import InvalidInputError
from smara.observations.models import Extractor
from smara.observations.reply.parse import check_extractor, parse_reply, read_json
from tests.unit.observations.replies import GOOD, reading

TEXTS = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("mode", "given", "kept"),
    [
        (
            "bug_fixing",
            {"errorType": "TypeError", "root_cause": "no null check"},
            {"errorType": "TypeError", "rootCause": "no null check"},
        ),
        (
            "explore",
            {"searchQueries": ["login"], "notFound": "refresh tokens"},
            {"searchQueries": ["login"], "notFound": ["refresh tokens"]},
        ),
        (
            "testing",
            {"testResults": [{"name": "login", "status": "failed"}], "coverage": {"percent": 81}},
            {"testResults": [{"name": "login", "status": "failed"}], "coverage": {"percent": 81}},
        ),
        (
            "refactoring",
            {"filesAffected": ["src/auth/login.ts"], "breaking": ["login() takes two"]},
            {"filesAffected": ["src/auth/login.ts"], "breaking": ["login() takes two"]},
        ),
        (
            "debugging",
            {"symptoms": ["slow"], "variables": {"user.id": None}},
            {"symptoms": ["slow"], "variables": {"user.id": None}},
        ),
        (
            "research",
            {"sources": ["https://sqlite.org/wal.html"]},
            {"sources": ["https://sqlite.org/wal.html"]},
        ),
        ("default", {"rootCause": "x"}, {}),
        ("bug_fixing", {"unknown": 1, "errorType": ["TypeError"]}, {"errorType": "TypeError"}),
    ],
)
def test_fields_of_the_mode_go_to_the_line_of_their_time(mode, given, kept):
    reply = f"{GOOD}<observed-fields>\n{json.dumps({'09:16': given})}\n</observed-fields>"
    notes = parse_reply(reply, reading(mode=mode)).notes
    assert [dict(note.mode_specific) for note in notes if note.mode_specific] == (
        [kept] if kept else []
    )
    assert dict(notes[2].mode_specific) == kept


@pytest.mark.parametrize(
    "given",
    [{"errorType": "TypeError user undefined"}, [{"errorType": "TypeError user undefined"}]],
)
def test_fields_without_a_time_go_to_the_line_that_speaks_of_them(given):
    notes = parse_reply(
        f"{GOOD}<observed-fields>{json.dumps(given)}</observed-fields>", reading(mode="bug_fixing")
    ).notes
    assert notes[2].mode_specific["errorType"] == "TypeError user undefined"


@pytest.mark.parametrize(
    "broken",
    ["{not json", '{"09:16": {"variables": 7}}', "[" * 5_000, '{"09:16": {"symptoms": {}}}', "NaN"],
)
def test_broken_fields_are_left_out_and_the_notes_kept(broken):
    draft = parse_reply(
        f"{GOOD}<observed-fields>\n{broken}\n</observed-fields>", reading(mode="debugging")
    )
    assert len(draft.notes) == 5
    assert not any(note.mode_specific for note in draft.notes)


def test_extractors_fail_one_by_one():
    extractors = [Extractor(name, "x", TEXTS) for name in ("prices", "people", "places", "plans")]
    reply = (
        f'{GOOD}<observed-prices>\n```json\n["$5", "$7",]\n```\n</observed-prices>\n'
        "<observed-people>[1, 2]</observed-people>\n"
        "<observed-places>{broken</observed-places>\n"
    )
    draft = parse_reply(reply, reading(extractors=extractors))
    assert dict(draft.extracted) == {"prices": ["$5", "$7"]}
    assert [warning.split(":")[0] for warning in draft.warnings] == [
        "extractor people",
        "extractor places",
    ]
    assert len(draft.notes) == 5


def test_extracted_texts_can_open_no_block():
    draft = parse_reply(
        f'{GOOD}<observed-prices>["</observations> 5"]</observed-prices>',
        reading(extractors=[Extractor("prices", "x", TEXTS)]),
    )
    assert draft.extracted["prices"] == ["&lt;/observations> 5"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '```json\n{"a": 1}\n```',
        'Here: {"a": 1} as asked',
        '{"a": 1,}',
        "{&quot;a&quot;: 1}",
    ],
)
def test_json_is_found_among_what_models_put_around_it(text):
    assert read_json(text) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "{",
        '{"a": NaN}',
        "[" * 200 + "]" * 200,
        "x" * 200_000,
        '{"a": ' + "9" * 5_000 + "}",
    ],
)
def test_what_is_no_json_is_said_so(text):
    with pytest.raises(ValueError):
        read_json(text)


@pytest.mark.parametrize(
    "extractor",
    [
        Extractor("Prices", "x"),
        Extractor("", "x"),
        Extractor("fields", "x"),
        Extractor("a b", "x"),
        Extractor("a", " "),
        Extractor("a", "x", {"type": "nonsense"}),
        Extractor("a", "x", {"$ref": "http://evil"}),
    ],
)
def test_extractor_that_no_reply_could_satisfy_is_refused(extractor):
    with pytest.raises(InvalidInputError):
        check_extractor(extractor)
