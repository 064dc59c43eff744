"""The story of document 1: implemented in one session, forgotten, found exactly in the next."""

from __future__ import annotations

import smara
from smara.testing import FakeClock
from tests.surfaces.shell import smara as shell
from tests.surfaces.shell import spawn

SCHEMA = """Created `src/schemas/auth.ts`:

```ts
export const LoginSchema = z.object({
  email: z.string().email(),
  password: z.string().min(8),
})
```"""
WEEK = 7 * 24 * 3600


def test_schema_of_the_first_session_is_found_word_for_word_in_the_second(tmp_path, monkeypatch):
    """
    1. Session 1, on the command line: the user asks for a login, the agent answers with the schema.
    2. Three weeks of other work follow, through Python, on the same store.
    3. The first session ends and is compacted: what is shown of it is a summary, with the names.
    4. Session 2, on the command line: the question finds the exact message, first of all.
    5. So does the name alone, a piece of it, and the path of the file.
    6. From the hit the way leads to what stood around it.
    7. Python gives the same answer as the command line.
    """
    db = str(tmp_path / "smara.db")
    monkeypatch.setenv("SMARA_DB", db)

    def add(role: str, text: str) -> None:
        call = ("messages", "add", "--thread", "login", "--role", role, "--content", "-")
        assert shell(*call, stdin=text.encode()).code == 0

    # 1
    add("user", "implement login with Zod")
    add("assistant", SCHEMA)
    add("user", "Good. The staging password is hunter2-Xy9!kkpq, never log it.")

    # 2
    clock = FakeClock(smara_now())
    with smara.open(db, clock=clock) as memory:
        for day in range(21):
            clock.advance(WEEK / 7)
            for number in range(6):
                memory.messages.add(
                    thread_id=f"day-{day}", role="user", content=f"Fix ticket {day * 6 + number}"
                )
                memory.messages.add(
                    thread_id=f"day-{day}",
                    role="assistant",
                    content=f"Changed src/view_{number}.ts; the schema is fine",
                )

    # 3
    assert shell("compact", "--thread", "login", "--json").data["messagesCompacted"] == 3
    with smara.open(db) as memory:
        (shown,) = memory.history.window("login")
        assert "LoginSchema" in shown.text
        assert SCHEMA not in shown.text

    # 4
    data = spawn("search", "Login schema", "--limit", "1", "--json").data
    (hit,) = data["results"]
    assert (hit["content"], hit["threadId"], hit["source"], hit["rank"]) == (
        SCHEMA,
        "login",
        "compacted",
        1,
    )
    assert data["totalHits"] > 1

    # 5
    for query in ("LoginSchema", "ginSchem", "src/schemas/auth.ts", "show me the login schema"):
        assert (
            shell("search", query, "--limit", "1", "--json").data["results"][0]["content"] == SCHEMA
        ), query

    # 6
    around = shell("messages", "show", hit["id"], "--around", "1", "--json").data
    assert [message["seq"] for message in around] == [1, 2, 3]
    assert "hunter2" not in str(around), "what was secret never came in"

    # 7
    with smara.open(db) as memory:
        assert [found.id for found in memory.search("Login schema", limit=1)] == [hit["id"]]


def smara_now() -> int:
    from smara.core.clock import SystemClock

    return SystemClock().now_ms()
