"""Processes that call models, and what they report."""

from __future__ import annotations

import os
import random
import signal
from multiprocessing.connection import Connection
from typing import Any

import smara
from smara.errors import BudgetSpentError
from smara.models.chat import ChatReply, ChatRequest, Usage

READY = "ready"


class Spender:
    """A model that uses some of what it may, tells the pipe, and kills its own process now and
    then.
    """

    name = "spender"

    def __init__(self, pipe: Connection, seed: str, kill_chance: float) -> None:
        self._pipe = pipe
        self._random = random.Random(seed)
        self._kill_chance = kill_chance

    def complete(self, request: ChatRequest, abort: Any = None) -> ChatReply:
        usage = Usage(
            self._random.randint(1, 70), self._random.randint(1, request.max_output_tokens)
        )
        self._pipe.send(usage.tokens)  # what a vendor would charge for, whatever happens next
        if self._random.random() < self._kill_chance:
            os.kill(os.getpid(), signal.SIGKILL)
        return ChatReply("ok", usage)


def spend(
    pipe: Connection, address: str, seed: str, tokens_per_hour: int, kill_chance: float = 0.0
) -> None:
    """Call until the budget is spent; the tokens of each call are told while it is made."""
    model = Spender(pipe, seed, kill_chance)
    pipe.send(READY)
    with smara.open(
        address,
        durability="normal",
        chat_model=model,
        model_tokens_per_hour=tokens_per_hour,
        check_index=False,
    ) as memory:
        try:
            while True:
                memory.models.complete(ChatRequest("hello", max_output_tokens=200))
        except BudgetSpentError:
            return
