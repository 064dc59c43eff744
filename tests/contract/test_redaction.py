"""Secrets are replaced before anything is stored (rulings 27 and 38)."""

from __future__ import annotations

from smara import NewMessage, NewThread, Part

SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
AWS = "AKIA" + "Z7QK3MWL2XJ5TB6R"


def everything(memory):
    """All that can be read back, as one text."""
    messages = memory.messages.list(thread_id="t")
    return repr(
        (
            messages,
            memory.threads.find("t"),
            memory.compactions.list("t"),
            memory.history.window("t"),
        )
    )


def test_a_secret_in_a_text_is_replaced_by_a_placeholder_that_says_what_was_there(memory, say):
    raw = say(f"push with {SECRET} please").raw_content
    assert SECRET not in raw
    assert "[REDACTED:" in raw
    assert raw.startswith("push with ")
    assert raw.endswith(" please")


def test_the_words_around_a_secret_are_found_and_the_secret_is_not(memory, say):
    added = say(f"deploy zebra with {SECRET}")
    assert [hit.id for hit in memory.search("zebra")] == [added.id]
    assert [hit.id for hit in memory.search(SECRET)] == []
    assert memory.complete("ghp_") == []


def test_secrets_in_every_kind_of_part_are_replaced(memory, say):
    say(
        [
            Part("text", f"key {SECRET}"),
            Part("reasoning", f"use {SECRET}"),
            Part(
                "tool_call",
                name="Bash",
                arguments={
                    "command": f"curl -H 'Authorization: Bearer {SECRET}'",
                    "deep": [SECRET],
                },
            ),
            Part("tool_result", f"export GITHUB_TOKEN={SECRET}"),
            Part("image", f"a screenshot of {SECRET}"),
            Part("file", uri=f"https://user:{SECRET}@example.com/x"),
        ]
    )
    assert SECRET not in everything(memory)


def test_a_secret_in_the_name_of_a_file_is_replaced(memory, say):
    say([Part("file", name=f"{SECRET}.txt"), Part("tool_call", name=SECRET, arguments={})])
    assert SECRET not in everything(memory)


def test_a_secret_in_tool_arguments_given_as_text_is_replaced(memory, say):
    say([Part("tool_call", name="Bash", arguments=f'{{"token": "{SECRET}"}}')])
    assert SECRET not in everything(memory)


def test_a_secret_known_only_by_its_key_is_replaced(memory, say):
    say([Part("tool_call", name="Login", arguments={"user": "ann", "password": "tr0ub4dor&3-Zx9"})])
    assert "tr0ub4dor" not in everything(memory)


def test_a_secret_in_metadata_is_replaced_in_values_and_keys(memory, say):
    say(metadata={"env": {"AWS_ACCESS_KEY_ID": AWS}, SECRET: 1, "list": [f"x {SECRET}"]})
    assert SECRET not in everything(memory)
    assert AWS not in everything(memory)


def test_a_secret_in_a_batch_is_replaced(memory):
    memory.messages.add_many(thread_id="t", messages=[NewMessage("tool", f"token={SECRET}")])
    assert SECRET not in everything(memory)


def test_a_secret_in_a_title_or_in_thread_metadata_is_replaced(memory):
    memory.threads.add("t", title=f"rotate {SECRET}", metadata={"currentTask": f"rotate {SECRET}"})
    assert SECRET not in everything(memory)
    memory.threads.update("t", title=f"again {AWS}", metadata={"note": AWS})
    memory.threads.put(NewThread("t", metadata={"other": SECRET}))
    assert SECRET not in everything(memory)
    assert AWS not in everything(memory)


def test_a_summary_holds_no_secret(memory, say):
    for _ in range(10):
        say(f"please use {SECRET} in deploy_key()")
    memory.compactions.compact("t")
    assert SECRET not in everything(memory)


def test_redacted_parts_still_fit_together(memory, say):
    added = say(
        [
            Part("text", f"a {SECRET} b"),
            Part("tool_call", name="X", arguments={"k": SECRET, "l": "m"}),
            Part("text", "end"),
        ]
    )
    kept = memory.messages.get(added.id)
    assert kept == added
    assert (kept.parts[1].arguments["l"], kept.parts[2].text) == ("m", "end")


def test_nothing_of_a_secret_reaches_the_disk(memory, say, place):
    say(f"token {SECRET}", metadata={"t": SECRET})
    memory.close()
    if place.kind == "sqlite":
        for file in place.address.parent.iterdir():
            assert SECRET.encode() not in file.read_bytes()


def test_a_text_without_secrets_is_stored_as_it_is(say):
    text = (
        "commit 3f2a9c1b7d8e4f5061728394a5b6c7d8e9f00112 and uuid "
        "01900000-0000-7abc-8000-000000000001"
    )
    assert say(text).raw_content == text
