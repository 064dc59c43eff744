"""Read single keys from a person, without a line's end.

A terminal stays in one mode for the whole sitting: a change between two keys would throw away
what a quick person, or a slow line, has sent meanwhile. Windows has a console function instead.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

ESCAPE, CONTROL_C, CONTROL_D = "\x1b", "\x03", "\x04"


class Keyboard(Protocol):
    """Single keys, and a pause in which another program has the terminal."""

    def read(self) -> str:
        """Return the next key, or an empty text at the end."""

    def paused(self) -> AbstractContextManager[None]:
        """Give the terminal back for a while, for an editor."""


class TerminalKeyboard:
    """The keys of a Unix terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._termios = importlib.import_module("termios")
        self._before = self._termios.tcgetattr(descriptor)

    def set_mode(self, is_single: bool) -> None:
        """Read keys one by one, or lines as before."""
        mode = list(self._before)
        if is_single:
            mode[3] &= ~(self._termios.ECHO | self._termios.ICANON)
        # What was typed meanwhile stays: the module tty would discard it.
        self._termios.tcsetattr(self._descriptor, self._termios.TCSADRAIN, mode)

    def read(self) -> str:
        key = os.read(self._descriptor, 1)
        if key == ESCAPE.encode():
            return self._rest_of_sequence()
        while key and key[0] >= 0xC0 and len(key) < 4:  # the first byte of a longer character
            try:
                return key.decode()
            except UnicodeDecodeError:
                key += os.read(self._descriptor, 1)
        return key.decode("utf-8", "replace")

    def _rest_of_sequence(self) -> str:
        """Read over an arrow or function key, which is no decision; a bare Escape is one."""
        select = importlib.import_module("select")
        rest = ""
        while select.select([self._descriptor], [], [], 0.05)[0] and len(rest) < 8:
            rest += os.read(self._descriptor, 1).decode("latin-1")
            if (rest[-1].isalpha() and rest != "O") or rest[-1] == "~":
                break
        return ESCAPE + rest

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.set_mode(is_single=False)
        try:
            yield
        finally:
            self.set_mode(is_single=True)


class WindowsKeyboard:
    """The keys of a Windows console, by the functions of ``msvcrt``."""

    def __init__(self, console: Any) -> None:
        self._console = console

    def read(self) -> str:
        key = str(self._console.getwch())
        if key in ("\x00", "\xe0"):  # an arrow or function key comes in two parts
            return ESCAPE + str(self._console.getwch())
        if key == CONTROL_C:
            raise KeyboardInterrupt
        return key

    @contextmanager
    def paused(self) -> Iterator[None]:
        yield


@contextmanager
def open_keyboard() -> Iterator[Keyboard]:
    """Read keys from standard input until the block ends."""
    if sys.platform == "win32":
        yield WindowsKeyboard(importlib.import_module("msvcrt"))
        return
    keyboard = TerminalKeyboard(sys.stdin.fileno())
    keyboard.set_mode(is_single=True)
    try:
        yield keyboard
    finally:
        keyboard.set_mode(is_single=False)
