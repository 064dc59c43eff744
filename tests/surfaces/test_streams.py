"""What comes in by standard input, and readers and people who leave early."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress

import pytest

import smara as library
from tests.surfaces.shell import command, left_early, smara, spawn

ADD = ("messages", "add", "--thread", "t", "--role", "user", "--content", "-", "--json")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (b"one\ntwo\n", "one\ntwo\n"),
        ("重跑 café".encode(), "重跑 café"),
        (b"\xff\xfe not UTF-8 \x80", "\udcff\udcfe not UTF-8 \udc80"),
        (b"nul\x00 and \r\n line", "nul\x00 and \r\n line"),
    ],
)
def test_dash_reads_standard_input_byte_for_byte(db, given, kept):
    assert smara(*ADD, stdin=given).data["content"] == kept
    assert smara("messages", "show", "t:1", "--json").data["content"] == kept


def test_dash_reads_the_standard_input_of_a_real_process(db):
    said = spawn(*ADD, stdin=b"piped \xff")
    assert (said.code, said.data["content"]) == (0, "piped \udcff")


def test_added_message_is_named_in_one_line(db):
    said = smara("messages", "add", "--thread", "t", "--role", "user", "--content", "hello")
    identifier, thread, seq = said.out.rstrip("\n").split("\t")
    assert (thread, seq) == ("t", "1")
    assert smara("messages", "show", identifier, "--json").data["seq"] == 1


def test_secret_on_standard_input_never_comes_back(db):
    said = smara(*ADD, stdin=b"the key is ghp_16C7e42F292c6912E7710c838347Ae178B4a")
    assert said.data["content"] == "the key is [REDACTED:github-token]"


@pytest.mark.parametrize(
    "call",
    [
        ["messages", "list", "--thread", "t", "--limit", "3000"],
        ["search", "word", "--full", "--limit", "1000"],
    ],
)
def test_reader_that_leaves_early_is_no_failure(db, call):
    with library.open(db) as memory:
        memory.messages.add_many(
            thread_id="t",
            messages=[{"role": "user", "content": f"word {n} " * 40} for n in range(1200)],
        )
    assert left_early(*call) == (0, b"")


@pytest.fixture
def heeds_interrupts():
    """Whoever runs these tests in the background of a shell ignores interrupts, and so would all
    that they start.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
def test_interrupted_call_leaves_with_130_and_keeps_what_was_stored(db):
    """The child has reached its work when it has read more than a pipe holds."""
    call = command(*ADD[:-1])
    pipe = subprocess.PIPE
    process = subprocess.Popen(call, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    process.stdin.write(b" " * (1 << 20))
    process.send_signal(signal.SIGINT)
    with suppress(BrokenPipeError):
        # Just before it waits for the pipe, the call does not notice: it must not wait for ever.
        process.stdin.write(b" " * 4_096)
    out, error = process.communicate(timeout=600)
    assert (process.returncode, out) == (130, b"")
    assert error.decode().strip() == "smara: Interrupted; what was stored stays stored."
    assert smara("doctor").code == 0
