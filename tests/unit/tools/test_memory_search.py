"""``memory-search``: what was said, whole when it fits, around the match when it does not."""

from __future__ import annotations

import pytest

from smara.shapes import shares
from smara.tools.catalogue import ToolContext
from smara.tools.render import render
from smara.tools.toolbox import Toolbox
from tests.agent_events import Script

LONG = "filler " * 2_000


@pytest.fixture
def said(memory):
    return [
        memory.messages.add(thread_id="login", role="user", content="Implement the login with Zod"),
        memory.messages.add(
            thread_id="login", role="assistant", content="export const LoginSchema = z.object({})"
        ),
        memory.messages.add(thread_id="deploy", role="user", content=f"{LONG} retry_policy {LONG}"),
    ]


def test_search_gives_three_hits_unless_more_are_asked_for(ask, said, memory):
    answer = ask.search("search", query="LoginSchema")
    hit = answer["results"][0]
    assert hit["content"] == "export const LoginSchema = z.object({})"
    assert (hit["id"], hit["source"], hit["rank"], hit["threadId"]) == (
        said[1].id,
        "raw",
        1,
        "login",
    )
    assert {"createdAt", "score", "why", "snippet"} <= set(hit)
    assert "taskId" not in hit
    assert answer["totalHits"] >= 1
    assert len(ask.search("search", query="login", limit=5)["results"]) == 2
    for number in range(5):
        memory.messages.add(thread_id=f"t{number}", role="user", content=f"login no {number}")
    assert len(ask.search("search", query="login")["results"]) == 3


def test_second_page_goes_on_where_the_first_ended(ask, memory):
    memory.messages.add_many(
        thread_id="t",
        messages=[{"role": "user", "content": f"parser note {number}"} for number in range(5)],
    )
    pages = [ask.search("search", query="parser", limit=2, page=page) for page in (1, 2, 3)]
    assert [[hit["rank"] for hit in page["results"]] for page in pages] == [[1, 2], [3, 4], [5]]
    assert [page.get("nextPage") for page in pages] == [2, 3, None]
    assert len({hit["id"] for page in pages for hit in page["results"]}) == 5


def test_long_hit_is_cut_around_its_best_match(ask, said):
    (hit,) = ask.search("search", query="retry_policy")["results"]
    start, end, total = hit["contentRange"]
    assert "retry_policy" in hit["content"]
    assert (len(hit["content"]), total) == (end - start, len(said[2].raw_content))
    assert said[2].raw_content[start:end] == hit["content"]


def test_hits_of_one_answer_fill_a_page_together_at_most(ask, memory):
    for number in range(5):
        memory.messages.add(thread_id="t", role="tool", content=f"walrus {number} {LONG}")
    results = ask.search("search", query="walrus", limit=5)["results"]
    assert sum(len(hit["content"]) for hit in results) <= 6_000
    assert all("walrus" in hit["content"] for hit in results)


def test_read_gives_a_whole_message_page_by_page(ask, said):
    pages, page = [], 1
    while page:
        answer = ask.search("read", id=said[2].id, page=page)
        pages.append(answer["message"]["content"])
        page = answer.get("nextPage")
    assert "".join(pages) == said[2].raw_content
    assert "contentRange" not in ask.search("read", id=said[0].id)["message"]


def test_read_of_an_unknown_message_says_how_to_find_one(ask):
    answer = ask.refused("memory-search", "read", id="nope")
    assert answer["code"] == "not_found"
    assert "Search" in answer["error"]


def test_hit_names_its_task_by_the_short_id(ask, memory):
    task = ask.new("Form")
    ask.mutate("claim", id=task)
    memory.messages.add(
        thread_id="talk", role="assistant", content="the walrus form", session_id="abc-123"
    )
    (hit,) = ask.search("search", query="walrus")["results"]
    assert hit["taskId"] == task
    assert len(ask.search("search", query="walrus", taskId=task)["results"]) == 1
    assert ask.search("search", query="walrus", taskId=ask.new("other"))["results"] == []


def test_task_that_another_system_named_keeps_its_name(ask, memory):
    """Even when it looks like the beginning of one or of several ids of ours."""
    ids = [memory.tasks.add(f"task {number}").id for number in range(3)]
    for number, name in enumerate(("JIRA-7", ids[0][:6], ids[1][:-1])):
        memory.messages.add(thread_id="t", role="user", content=f"walrus{number}", task_id=name)
        assert ask.search("search", query=f"walrus{number}")["results"][0]["taskId"] == name


def test_search_can_be_narrowed_by_thread_and_time(ask, said):
    assert ask.search("search", query="login", threadId="deploy")["results"] == []
    assert ask.search("search", query="login", since="2099-01-01")["results"] == []
    assert ask.search("search", query="login", until="2099-01-01", limit=2)["results"]
    assert "since" in ask.refused("memory-search", "search", query="x", since="yesterday")["error"]


def test_nothing_found_is_an_answer(ask):
    answer = ask.search("search", query="walrus")
    assert (answer["results"], answer["totalHits"]) == ([], 0)


def test_nearest_is_told_apart_and_in_a_line_each(ask, memory):
    memory.messages.add(
        thread_id="t", role="user", content=f"LoginForm is blue. {'So it is. ' * 99}"
    )
    answer = ask.search("search", query="SignupForm")
    assert (answer["results"], answer["totalHits"]) == ([], 0)
    assert [hit["snippet"][:17] for hit in answer["nearest"]] == ["LoginForm is blue"]
    lines = render(answer).splitlines()
    assert lines[0].startswith("Nothing found.")
    assert lines[1] == "Nearest, and probably not an answer:"
    assert all(len(line) < 300 for line in lines)


@pytest.mark.parametrize("query", ["", " ", "\n\t"])
def test_blank_query_is_told_in_the_words_of_the_specification(ask, query):
    assert (
        ask.refused("memory-search", "search", query=query)["error"]
        == "Search failed: invalid query"
    )


@pytest.mark.parametrize(
    ("lengths", "budget", "granted"),
    [
        ([], 10, []),
        ([3, 3], 10, [3, 3]),
        ([100, 5_000, 9_000], 6_000, [100, 2_950, 2_950]),
        ([9, 1], 4, [3, 1]),
    ],
)
def test_budget_is_shared_so_that_short_texts_stay_whole(lengths, budget, granted):
    assert shares(lengths, budget) == granted


def test_a_search_weighs_memories_by_the_phase_that_is_named_or_that_the_session_is_in(memory):
    for type_ in ("error_pattern", "module_insight"):
        memory.memories.add(
            f"The parser of the {type_} reads tokens twice",
            type=type_,
            source="user_taught",
            by="person",
        )
    asked = Toolbox(memory, ToolContext(session_id="s1"))

    def first(**arguments):
        given = {"action": "search", "query": "parser reads tokens twice", **arguments}
        return asked.call("memory-search", given).structured["results"][0]["type"]

    assert first(phase="explore") == "module_insight"
    assert first(phase="refine") == "error_pattern"
    script = Script("s1").edit("src/a/x.py").red()
    memory.behavior.observe_batch(script.events)
    assert memory.behavior.phase("s1") == "refine"
    assert first() == "error_pattern"
    memory.behavior.observe_batch(Script("s2").read("src/a/x.py").events)
    assert memory.behavior.phase("s2") == "explore"
    assert memory.behavior.phase("nobody") is None
