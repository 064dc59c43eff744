"""``smara search``: the shape of ruling 20, filters, and what a person reads."""

from __future__ import annotations

import pytest

import smara as library
from tests.contract.test_commits import REASON, RETRY, Repository
from tests.surfaces.conftest import SCHEMA
from tests.surfaces.shell import on_terminal, plain, smara, spawn

REQUIRED = [
    "id",
    "source",
    "content",
    "rank",
    "taskId",
    "createdAt",
    "threadId",
    "score",
    "why",
    "snippet",
]


def ids(said):
    return [hit["threadId"] for hit in said.data["results"]]


def test_hit_has_the_keys_every_door_promises(store):
    data = spawn("search", "LoginSchema", "--json").data
    assert list(data) == ["results", "totalHits"]
    hit = data["results"][0]
    assert list(hit)[: len(REQUIRED)] == REQUIRED
    assert (hit["content"], hit["source"], hit["rank"], hit["threadId"]) == (
        SCHEMA,
        "raw",
        1,
        "login",
    )
    assert isinstance(hit["createdAt"], int)
    assert hit["why"]
    assert all(isinstance(reason, str) for reason in hit["why"])
    assert 0 < hit["score"] <= 1
    assert "LoginSchema" in hit["snippet"]


def test_ranks_count_up_and_scores_go_down(store):
    results = smara("search", "login schema staging", "--json").data["results"]
    assert [hit["rank"] for hit in results] == list(range(1, len(results) + 1))
    assert [hit["score"] for hit in results] == sorted(
        (hit["score"] for hit in results), reverse=True
    )


def test_hit_of_a_task_names_it(store):
    assert [hit["taskId"] for hit in smara("search", "staging", "--json").data["results"]] == ["7"]


def test_hit_shows_what_stands_around_it(store):
    hit = smara("search", "LoginSchema", "--json").data["results"][0]
    assert [each["snippet"] for each in hit["before"] + hit["after"]] == [
        "Implement the login with Zod",
        "42 passing",
    ]


def test_compacted_message_is_found_and_says_so(store):
    smara("compact", "--thread", "login")
    hit = smara("search", "LoginSchema", "--json").data["results"][0]
    assert (hit["source"], hit["content"]) == ("compacted", SCHEMA)


def test_no_hit_is_no_failure(store):
    said = smara("search", "zebrafinch", "--json")
    assert (said.code, said.data) == (0, {"results": [], "totalHits": 0})
    said = smara("search", "zebrafinch")
    assert (said.code, said.out) == (0, "")
    assert "Try fewer or other words" in said.err


@pytest.mark.parametrize("query", ['"', "\x00", "a" * 5000, "*", "NEAR(", "-- ; DROP", "\ud800"])
def test_no_query_is_a_failure(store, query):
    assert smara("search", "--json", "--", query).code == 0


@pytest.mark.parametrize("words", [("search", ""), ("search", "  "), ("tasks", "search", "")])
def test_an_empty_query_is_refused_with_what_to_do(store, words):
    said = smara(*words)
    assert (said.code, said.out) == (2, "")
    assert "The query is empty. Give some words" in said.err


def test_one_file_read_many_times_is_one_hit_that_says_how_often(db):
    lines = [f"    step_{number} = plan.next({number})" for number in range(40)]
    for reading in range(5):
        # Each time some lines stand above, so that every line has another number.
        above = ["# a note"] * reading
        text = "\n".join(f"{no}\t{line}" for no, line in enumerate([*above, *lines], 1))
        smara("messages", "add", "--thread", f"t{reading}", "--role", "tool", "--content", text)
    smara("messages", "add", "--thread", "talk", "--role", "user", "--content", "Why step_17?")
    said = smara("search", "step_17")
    heads = [line for line in said.out.splitlines() if line[:1].isdigit()]
    assert len(heads) == 2
    assert sum("and 4 more like it" in head for head in heads) == 1
    found = smara("search", "step_17", "--json").data
    assert sorted(each["copies"] or 0 for each in found["results"]) == [0, 4]
    assert found["totalHits"] == 6


def test_a_person_is_told_how_to_read_a_hit_whole(store):
    seen = plain(on_terminal("search", "LoginSchema").out)
    assert "smara messages show login:2 shows a message whole." in seen
    assert "smara messages show" not in smara("search", "LoginSchema").out


def test_a_hit_shows_no_number_that_its_place_contradicts(store):
    head = smara("search", "LoginSchema").out.splitlines()[0]
    assert head.startswith("1. assistant · login:2 · ")
    assert "weak match" not in head
    assert "1.00" not in head
    assert "relevance 1.00" in smara("search", "LoginSchema", "--explain").out


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--thread", "login"], {"login"}),
        (["--thread", "deploy"], {"deploy"}),
        (["--role", "user"], {"login", "deploy"}),
        (["--role", "tool"], set()),
        (["--role", "tool", "--role", "user"], {"login", "deploy"}),
        (["--task", "7"], {"deploy"}),
        (["--resource", "nobody"], set()),
        (["--resource", "default"], {"login", "deploy"}),
        (["--since", "2100-01-01"], set()),
        (["--until", "2100-01-01"], {"login", "deploy"}),
        (["--limit", "1"], {"login"}),
    ],
)
def test_filters_narrow_what_is_found(store, filters, found):
    assert set(ids(smara("search", "login with zod or deploy", *filters, "--json"))) == found


def test_total_counts_more_than_the_limit_shows(store):
    data = smara("search", "login deploy", "--limit", "1", "--json").data
    assert len(data["results"]) == 1
    assert data["totalHits"] > 1


def test_explained_answer_says_why_and_what_it_cost(store):
    said = smara("search", "LoginSchema", "--explain")
    assert "why: matches" in said.out
    assert "postings" in said.out
    trace = smara("search", "LoginSchema", "--explain", "--json").data["trace"]
    assert set(trace) == {
        "terms",
        "postings",
        "candidates",
        "isComplete",
        "notes",
        "queryType",
        "usedMeaning",
        "stages",
    }


def test_full_answer_keeps_the_lines_of_the_message(store):
    assert "\n     password: z.string().min(12),\n" in smara("search", "LoginSchema", "--full").out


def test_conversations_are_found_as_a_table(store):
    said = smara("search", "LoginSchema", "--threads")
    assert said.out.startswith("rank\tthread\ttitle\twhy\n")
    assert said.rows[0][1:3] == ["login", "Login with Zod"]
    assert (
        smara("search", "LoginSchema", "--threads", "--json").data["results"][0]["threadId"]
        == "login"
    )


def test_head_of_a_hit_leads_to_the_message(store):
    head = smara("search", "LoginSchema").out.splitlines()[0]
    assert head.startswith("1. assistant · login:2 · ")
    address = head.split(" · ")[1]
    assert smara("messages", "show", address, "--json").data["content"] == SCHEMA


def test_terminal_shows_the_words_in_bold_and_folds_at_its_width(store):
    with library.open(store) as memory:
        memory.messages.add(
            thread_id="long", role="user", content="we keep the zanzibar list here " * 20
        )
    seen = on_terminal("search", "zanzibar", columns=60).out
    assert "\x1b[33m\x1b[1mzanzibar\x1b[0m" in seen
    assert "\ufffd" not in seen, "our own escapes must not be taken for somebody else's"
    assert max(map(len, plain(seen).splitlines())) <= 60


def test_explain_says_the_reasons_and_the_score_of_every_hit(store):
    lines = smara("search", "login schema", "--explain").out.splitlines()
    heads = [line for line in lines if line[:1].isdigit() and line[1:3] == ". "]
    reasons = [line for line in lines if line.startswith("   why: ")]
    scores = [line for line in lines if line.startswith("   score: relevance ")]
    assert len(heads) == len(reasons) == len(scores) > 0
    assert ": words " in scores[0]


@pytest.mark.parametrize("columns", [50, 80])
def test_explained_hits_fit_the_terminal_and_break_between_words(store, columns):
    seen = plain(on_terminal("search", "LoginSchema", "--explain", columns=columns).out)
    assert max(map(len, seen.splitlines())) <= columns
    assert "score: relevance" in seen


def test_a_commit_has_a_short_name_on_a_terminal_and_its_whole_one_in_a_pipe(
    db, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    repository = Repository(tmp_path)
    name = repository.commit(REASON, retry__py=RETRY.format(7))
    assert smara("commits", "update").code == 0
    asked = ("search", "retry", "--source", "commits")
    assert f"commit · {name} ·" in smara(*asked).out
    assert f"commit · {name[:9]} ·" in plain(on_terminal(*asked).out)


def test_without_explain_no_score_line_is_printed(store):
    assert "score:" not in smara("search", "login schema").out


def test_nearest_is_told_apart_from_what_is_found(store):
    said = smara("search", "SignupSchema", "--json")
    assert (said.data["results"], said.data["totalHits"]) == ([], 0)
    assert [hit["threadId"] for hit in said.data["nearest"]] == ["login"]
    told = smara("search", "SignupSchema")
    assert told.out == ""
    assert "No matches" in told.err
    assert "Nearest, and probably not an answer:\n- " in told.err
    assert "LoginSchema" in smara("search", "SignupSchema", "--min-score", "0").out
