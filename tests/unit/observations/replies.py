"""Conversations and replies for the tests of the observer and the reflector that have a model."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from smara.messages.models import Message, Part
from smara.observations.models import Note
from smara.observations.reply.dates import Timeline
from smara.observations.reply.parse import ReplyContext, parse_reply


def at(text: str, zone: str = "UTC") -> int:
    """A time such as ``2025-12-04 09:15`` in milliseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def message(
    seq: int, text: str | tuple[Part, ...], role: str = "user", when: str = "2025-12-04 09:15"
) -> Message:
    parts = (Part("text", text),) if isinstance(text, str) else text
    raw = "\n\n".join(part.render() for part in parts)
    return Message(
        f"m{seq}",
        "t",
        "r",
        seq=seq,
        role=role,
        raw_content=raw,
        parts=parts,
        token_count=len(raw) // 4,
        token_method="estimate",
        created_at=at(when),
    )


def conversation() -> list[Message]:
    """A short session on two days: a request, tool calls with an error, a fix, a switch of
    framework.
    """
    return [
        message(
            1,
            "We use TypeScript. Please fix the login bug in src/auth/login.ts",
            when="2025-12-04 09:15",
        ),
        message(
            2,
            (Part("tool_call", name="Bash", call_id="c1", arguments={"command": "npm test"}),),
            "assistant",
            when="2025-12-04 09:16",
        ),
        message(
            3,
            (
                Part(
                    "tool_result",
                    "TypeError: user.id is undefined at src/auth/login.ts:45\n1 failed, 41 passed",
                    call_id="c1",
                    is_error=True,
                ),
            ),
            "tool",
            when="2025-12-04 09:16",
        ),
        message(
            4,
            "I added a null check in authenticateUser(); now all 42 tests pass.",
            "assistant",
            when="2025-12-04 14:05",
        ),
        message(
            5, "great. we're switching from Express to Fastify by Friday", when="2025-12-05 09:00"
        ),
    ]


GOOD = """<observations>
Date: 2025-12-04
* 🔴 (09:15 #1) User said they use TypeScript
* 🟡 (09:15 #1) User asked to "fix the login bug in src/auth/login.ts"
* 🟡 (09:16 #2-3) Agent ran npm test: 1 failed, 41 passed
  * -> TypeError: user.id is undefined at src/auth/login.ts:45
* 🔴 (14:05 #4) ✅ Login bug fixed: null check in authenticateUser(); all 42 tests pass

Date: 2025-12-05
* 🔴 (09:00 #5) User is switching from Express to Fastify. (meaning 2025-12-05)
</observations>
<current-task>
Primary: switch from Express to Fastify
Secondary: none
</current-task>
<thread-title>Login bug and Fastify</thread-title>
"""


def reading(messages: list[Message] | None = None, zone: str = "UTC", **wishes) -> ReplyContext:
    return ReplyContext(
        Timeline.of_messages(conversation() if messages is None else messages, zone), **wishes
    )


def notes_of(text: str, **wishes) -> list[Note]:
    """The notes of a reply whose observations are given without their tags."""
    return list(parse_reply(f"<observations>\n{text}\n</observations>", reading(**wishes)).notes)


def only_note(text: str, **wishes) -> Note:
    (note,) = notes_of(text, **wishes)
    return note


def minute(note: Note, zone: str = "UTC") -> str:
    return f"{datetime.fromtimestamp(note.said_at / 1000, UTC if zone == 'UTC' else ZoneInfo(zone)):%Y-%m-%d %H:%M}"  # noqa: E501
