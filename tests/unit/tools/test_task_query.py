"""``task-query``: what each action answers."""

from __future__ import annotations


def test_ready_gives_what_can_be_started_and_counts_the_whole(ask):
    first = ask.new("Fix login redirect", priority=1)
    waits = ask.new("Write the release notes", dependsOn=first)
    chores = [ask.new(f"chore {number}", type="chore") for number in range(6)]
    answer = ask.query("ready")
    assert [task["id"] for task in answer["tasks"]] == [first, *chores[:4]]
    assert (answer["readyCount"], answer["blockedCount"], answer["nextPage"]) == (7, 1, 2)
    assert [task["id"] for task in ask.query("ready", page=2)["tasks"]] == chores[4:]
    assert waits not in str(answer["tasks"])


def test_ready_can_be_narrowed_by_type_and_label(ask):
    ask.new("one")
    bug = ask.new("two", type="bug", labels=["auth"])
    assert [task["id"] for task in ask.query("ready", type="bug")["tasks"]] == [bug]
    assert [task["id"] for task in ask.query("ready", label="auth")["tasks"]] == [bug]


def test_show_gives_all_of_a_task_and_what_stands_around_it(ask, memory):
    epic = ask.new("Login", type="epic")
    blocker = ask.new("Choose a library")
    task = ask.new(
        "Form", description="the whole text", parent=epic, dependsOn=blocker, labels=["ui"]
    )
    message = memory.messages.add(thread_id="talk", role="user", content="use Zod")
    ask.mutate("link", taskId=task, messageId=message.id)
    shown = ask.query("show", id=task)
    assert shown["task"]["description"] == "the whole text"
    assert shown["task"]["labels"] == ["ui"]
    assert shown["task"]["linkedMessageIds"] == [message.id]
    assert {"taskId": task, "dependsOnId": blocker, "type": "blocks"} in shown["task"][
        "dependencies"
    ]
    assert shown["isBlocked"] is True
    assert [each["id"] for each in shown["blockingTasks"]] == [blocker]
    assert [each["id"] for each in shown["parents"]] == [epic]
    around = ask.query("show", id=epic)
    assert [each["id"] for each in around["children"]] == [task]
    assert around["progress"] == {"closed": 0, "total": 1, "percent": 0}


def test_show_pages_through_a_long_description(ask):
    text = "".join(f"line {number}\n" for number in range(2_000))
    task = ask.new("long", description=text)
    pages, page = [], 1
    while page:
        shown = ask.query("show", id=task, page=page)
        pages.append(shown["task"]["description"])
        page = shown.get("nextPage")
    assert "".join(pages) == text
    assert max(map(len, pages)) <= 6_000
    assert ask.query("show", id=task)["task"]["descriptionRange"] == [0, 6_000, len(text)]


def test_show_names_the_newest_of_many_linked_messages_and_counts_the_rest(ask, memory):
    task = ask.new("talked about")
    ask.mutate("claim", id=task)
    said = memory.messages.add_many(
        thread_id="talk",
        messages=[{"role": "user", "content": f"word {number}"} for number in range(30)],
    )
    shown = ask.query("show", id=task)["task"]
    assert shown["linkedMessageCount"] == 30
    assert shown["linkedMessageIds"] == [message.id for message in said[-20:]]


def test_show_of_a_task_with_many_around_it_names_some_and_counts_all(ask):
    epic = ask.new("epic", type="epic")
    for number in range(25):
        ask.new(f"part {number}", parent=epic)
    shown = ask.query("show", id=epic)
    assert (len(shown["children"]), shown["childrenCount"]) == (20, 25)
    assert (len(shown["blockingTasks"]), shown["blockingTasksCount"]) == (20, 25)
    assert "children (25, the first of them):" in ask.call("task-query", "show", id=epic).text


def test_show_gives_metadata_and_lists_do_not(ask, memory):
    task = memory.tasks.add("imported", metadata={"origin": "beads"}).short_id
    assert ask.query("show", id=task)["task"]["metadata"] == {"origin": "beads"}
    assert "metadata" not in ask.query("list")["tasks"][0]


def test_list_filters_pages_and_tells_blockers(ask):
    first = ask.new("first")
    second = ask.new("second", dependsOn=first)
    done = ask.new("done")
    ask.mutate("close", id=done, summary="it is done")
    everything = ask.query("list")
    assert [task["id"] for task in everything["tasks"]] == [first, second, done]
    assert everything["total"] == 3
    assert everything["tasks"][1]["blockedBy"] == [first]
    closed = ask.query("list", status="closed")
    assert [(task["id"], task["summary"], task["closeReason"]) for task in closed["tasks"]] == [
        (done, "it is done", "completed")
    ]
    page = ask.query("list", limit=2)
    assert (len(page["tasks"]), page["nextPage"]) == (2, 2)
    assert [task["id"] for task in ask.query("list", limit=2, page=2)["tasks"]] == [done]


def test_list_gives_the_children_of_a_task(ask):
    epic = ask.new("Login", type="epic")
    child = ask.new("Form", parent=epic)
    assert [task["id"] for task in ask.query("list", parent=epic)["tasks"]] == [child]


def test_lists_show_the_beginning_of_long_descriptions(ask):
    ask.new("long", description="word " * 200)
    description = ask.query("list")["tasks"][0]["description"]
    assert len(description) <= 200
    assert description.endswith("…")


def test_search_ranks_tasks_and_can_bring_messages(ask, memory):
    memory.messages.add(thread_id="talk", role="user", content="the redirect loops after login")
    task = ask.new("Fix login redirect", description="it loops")
    ask.new("Something else")
    answer = ask.query("search", query="login redirect", includeMessages=True)
    assert [(hit["id"], hit["rank"]) for hit in answer["tasks"]] == [(task, 1)]
    assert answer["totalHits"] == 1
    assert answer["messages"][0]["content"] == "the redirect loops after login"
    assert "messages" not in ask.query("search", query="login redirect")


def test_search_pages_through_its_hits(ask):
    made = {ask.new(f"parser task {number}") for number in range(7)}
    pages = [ask.query("search", query="parser", page=page) for page in (1, 2, 3)]
    assert [len(page["tasks"]) for page in pages] == [3, 3, 1]
    assert {task["id"] for page in pages for task in page["tasks"]} == made
    assert "nextPage" not in pages[2]


def test_empty_query_is_told_in_the_words_of_the_specification(ask):
    for query in ("", "  \n"):
        answer = ask.refused("task-query", "search", query=query)
        assert answer["error"] == "Search failed: invalid query"
        assert answer["hint"]


def test_unknown_task_is_told_in_the_words_of_the_specification(ask):
    answer = ask.refused("task-query", "show", id="task-xyz")
    assert answer["error"] == "Task not found: task-xyz"
    assert (answer["code"], "list" in answer["hint"]) == ("not_found", True)
