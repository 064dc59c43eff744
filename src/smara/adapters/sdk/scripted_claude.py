"""Stand in for Claude Code, with the replies of a script.

Programs and tests run with it offline: ``query(prompt=…, options=…, transport=ScriptedClaude(…))``.
It asks the hooks of the SDK, answers with the next reply, and hands the lines of its transcript
over to the session store, as Claude Code does. Nothing is written to the disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import anyio
from claude_agent_sdk import Transport, project_key_for_directory

from smara.adapters.host_specs.claude import HOME


class ScriptedClaude(Transport):
    """A session of Claude Code with the replies of a script.

    Attributes:
        session_id: The session; its transcript is stored under it.
        additions: What hooks added to each prompt.
    """

    def __init__(self, replies: Sequence[str], session_id: str | None = None) -> None:
        """Prepare a session.

        Args:
            replies: One for each prompt.
            session_id: The session to go on with; by default a new one.
        """
        self.session_id = session_id or str(uuid4())
        self.additions: list[str] = []
        self._replies = list(replies)
        self._hooks: list[str] = []
        self._prompt = ""
        self._last_uuid: str | None = None
        self._send, self._receive = anyio.create_memory_object_stream[dict[str, Any]](1_000)

    async def connect(self) -> None:
        """Do nothing: there is no process."""

    async def write(self, data: str) -> None:
        """Answer a request, the outcome of a hook, or a prompt."""
        for line in data.splitlines():
            message = json.loads(line)
            if message["type"] == "control_request":
                matchers = (message["request"].get("hooks") or {}).get("UserPromptSubmit", [])
                self._hooks += [name for each in matchers for name in each["hookCallbackIds"]]
                answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
                self._put(type="control_response", response=answer)
            elif message["type"] == "control_response":
                answer = message["response"].get("response") or {}
                added = (answer.get("hookSpecificOutput") or {}).get("additionalContext", "")
                self._reply(added)
            elif message["type"] == "user":
                self._prompt = message["message"]["content"]
                if self._hooks:
                    facts = {"session_id": self.session_id, "prompt": self._prompt}
                    call = {"subtype": "hook_callback", "callback_id": self._hooks[0]}
                    request = {**call, "input": facts, "tool_use_id": None}
                    self._put(type="control_request", request_id=str(uuid4()), request=request)
                else:
                    self._reply("")

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what Claude Code would write."""
        async for message in self._receive:
            yield message

    async def end_input(self) -> None:
        """End the session: no prompt will come."""
        self._send.close()

    async def close(self) -> None:
        """End the session, and take nothing more."""
        self._send.close()
        self._receive.close()

    def is_ready(self) -> bool:
        """Return True: there is nothing to wait for."""
        return True

    def _reply(self, added: str) -> None:
        self.additions.append(added)
        reply = self._replies.pop(0)
        content = [{"type": "text", "text": reply}]
        entries = [self._entry("user", message={"role": "user", "content": self._prompt})]
        if added:
            attachment = {"type": "hook_additional_context", "content": [added]}
            entries.append(self._entry("attachment", attachment=attachment))
        spoken = {"role": "assistant", "model": "scripted", "content": content}
        entries.append(self._entry("assistant", message=spoken))
        project = project_key_for_directory(os.getcwd())
        path = os.path.join(HOME.path, "projects", project, f"{self.session_id}.jsonl")
        self._put(type="transcript_mirror", filePath=path, entries=entries)
        self._put(type="assistant", message=spoken, parent_tool_use_id=None)
        self._put(
            type="result",
            subtype="success",
            duration_ms=0,
            duration_api_ms=0,
            is_error=False,
            num_turns=1,
            result=reply,
        )

    def _entry(self, kind: str, **facts: Any) -> dict[str, Any]:
        parent, self._last_uuid = self._last_uuid, str(uuid4())
        return {
            "type": kind,
            "uuid": self._last_uuid,
            "parentUuid": parent,
            "sessionId": self.session_id,
            "timestamp": datetime.now(UTC).isoformat(),
            "cwd": os.getcwd(),
            "isSidechain": False,
            **facts,
        }

    def _put(self, **message: Any) -> None:
        self._send.send_nowait({"session_id": self.session_id, **message})
