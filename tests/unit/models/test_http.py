"""JSON over HTTP on loopback: what is sent, what comes back, and every way in which a server can
fail to answer.
"""

from __future__ import annotations

import socket
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from smara.errors import BadReplyError, ConfigError, ModelRefusedError, ModelUnavailableError
from smara.models.http import bearer, parse_address, request_json, without_login
from smara.testing import open_temporary
from tests.models_server import (
    Step,
    computed,
    cut,
    drip,
    garbage,
    hang,
    quota,
    reset,
    scripted_server,
    status,
)

LONG = 60.0


@pytest.fixture(autouse=True)
def _no_thread_stays_and_no_proxy_is_asked(monkeypatch, calls_under_way):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def post(url, body=None, seconds=LONG, **more):
    return request_json(
        url, body if body is not None else {"a": 1}, model="box", deadline_seconds=seconds, **more
    )


def failed(step, kind, seconds=LONG, **more):
    with scripted_server(step) as server:
        with pytest.raises(kind) as caught:
            post(server.url, seconds=seconds, **more)
        assert server.wait_until_left()
    return caught.value


def test_json_goes_out_and_comes_back():
    with scripted_server(
        computed(lambda asked: {"said": asked.body["text"], "path": asked.path})
    ) as server:
        reply = post(
            server.url + "/v1/x?y=1", {"text": "重跑 café \ud800 \u2028"}, headers={"X-Mine": "yes"}
        )
        assert reply == {"said": "重跑 café ? \u2028", "path": "/v1/x?y=1"}
        asked = server.requests[0]
        assert (asked.headers["content-type"], asked.headers["x-mine"]) == (
            "application/json",
            "yes",
        )
        assert asked.headers["accept-encoding"] == "identity"
        assert server.wait_until_left()


def test_a_plain_question_has_no_body():
    with scripted_server(computed(lambda asked: [asked.path])) as server:
        assert request_json(server.url + "/api/tags", model="box", deadline_seconds=LONG) == [
            "/api/tags"
        ]
    assert (server.requests[0].body, "content-type" in server.requests[0].headers) == ({}, False)


@pytest.mark.parametrize(
    ("step", "kind", "reason", "may_be_billed"),
    [
        (status(401), ModelRefusedError, "key", False), (status(403), ModelRefusedError, "key",
        False),
        (status(404), ModelRefusedError, "unknown_model", False), (status(400), ModelRefusedError,
        "request", False),
        (Step(status=302, body=b""), ModelRefusedError, "request", False),
        (status(413), ModelRefusedError, "too_long", False),
        (quota(), ModelRefusedError, "quota", False), (status(429), ModelUnavailableError,
        "rate_limit", False),
        (status(500), ModelUnavailableError, "server", False),
        (status(503), ModelUnavailableError, "overloaded", False),
        (reset(), ModelUnavailableError, "connection", True), (cut(), ModelUnavailableError,
        "connection", True),
        (garbage(), BadReplyError, "unreadable", True), (garbage(b""), BadReplyError, "unreadable",
        True),
        (garbage(b"<html>"), BadReplyError, "unreadable", True),
        (garbage(b"\xff\xfe"), BadReplyError, "unreadable", True),
        (garbage(b"[" * 100_000), BadReplyError, "unreadable", True),
        (garbage(b'{"score": NaN}'), BadReplyError, "unreadable", True),
        (garbage(b"[Infinity]"), BadReplyError, "unreadable", True),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_told_in_our_words(step, kind, reason, may_be_billed):
    error = failed(step, kind)
    assert (error.reason, error.may_be_billed, error.model) == (reason, may_be_billed, "box")


@pytest.mark.parametrize("step", [hang(), drip()])
def test_the_deadline_holds_whatever_the_server_does(step):
    error = failed(step, ModelUnavailableError, seconds=2.0)  # long enough to ask
    assert (error.reason, error.may_be_billed) == ("timeout", True)


def test_no_time_is_no_request():
    with scripted_server(garbage(b"{}")) as server, pytest.raises(ModelUnavailableError) as caught:
        post(server.url, seconds=0.0)
    assert (caught.value.reason, caught.value.may_be_billed, server.requests) == (
        "timeout",
        False,
        [],
    )


def test_nobody_at_the_address_costs_nothing():
    with socket.socket() as taken:  # nobody else gets the port, and nobody listens
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ModelUnavailableError) as caught:
            post(f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert (caught.value.reason, caught.value.may_be_billed) == ("connection", False)


def test_a_server_that_speaks_no_http_is_not_understood():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak():
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        speaking = threading.Thread(target=speak)
        speaking.start()
        with pytest.raises(BadReplyError) as caught:
            post(f"http://127.0.0.1:{server.getsockname()[1]}")
        speaking.join()
    assert caught.value.reason == "unreadable"


def test_a_body_that_is_too_long_is_not_read_to_its_end():
    error = failed(garbage(b"[" + b"1," * 500_000 + b"1]"), BadReplyError, most_bytes=100_000)
    assert error.reason == "too_long"


def test_a_redirect_is_not_followed_and_no_key_goes_along():
    with scripted_server(garbage(b"{}")) as other:
        moved = Step(status=307, body=b"", headers={"Location": other.url + "/rerank"})
        error = failed(moved, ModelRefusedError, headers=bearer("my-key"))
    assert (error.reason, error.status, other.requests) == ("request", 307, [])


def test_a_server_may_ask_for_patience_in_seconds_or_by_the_clock():
    later = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)
    assert failed(status(429, retry_after=7), ModelUnavailableError).retry_after_seconds == 7
    assert (
        7_000
        < failed(status(429, retry_after=later), ModelUnavailableError).retry_after_seconds
        <= 7_200
    )
    assert (
        failed(status(429, retry_after="soon"), ModelUnavailableError).retry_after_seconds is None
    )
    assert failed(status(503, retry_after=-5), ModelUnavailableError).retry_after_seconds is None


def test_a_caller_has_advice_of_its_own():
    error = failed(status(401), ModelRefusedError, advice={"key": "Set CO_API_KEY."})
    assert str(error).endswith("Set CO_API_KEY.")


def test_the_words_of_a_server_are_told_wherever_they_stand():
    with open_temporary():  # which knows how to redact them
        for body in (
            b'{"error": {"message": "no such model"}}',
            b'{"detail": "no such model"}',
            b"no such model",
        ):
            assert "no such model" in str(failed(Step(status=404, body=body), ModelRefusedError))


def test_a_password_in_an_address_is_sent_and_never_told():
    with scripted_server([garbage(b"{}"), status(404)]) as server:
        url = server.url.replace("http://", "http://ann:s%3Acret@")
        assert post(url) == {}
        assert server.requests[0].headers["authorization"] == "Basic YW5uOnM6Y3JldA=="
        with pytest.raises(ModelRefusedError) as caught:
            post(url)
    assert "cret" not in str(caught.value)
    assert without_login(url + "/v1") == server.url + "/v1"


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "box:8000",
        "ftp://box",
        "http://",
        "http://box:many",
        "http://box:99999",
        "http://bo x",
        "http://böx/é",
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_is_sent(bad):
    with pytest.raises(ConfigError, match="address"):
        parse_address(bad)
    with pytest.raises(ConfigError):
        post(bad)


@pytest.mark.parametrize("bad", ["two words", "line\nend", "schlüssel"])
def test_a_key_that_cannot_be_one_is_refused_and_not_repeated(bad):
    with pytest.raises(ConfigError) as caught:
        bearer(bad)
    assert bad not in str(caught.value)


def test_no_key_is_no_header():
    assert (bearer(None), bearer(""), bearer("k")) == ({}, {}, {"Authorization": "Bearer k"})


def test_a_proxy_of_the_system_is_used_but_never_for_this_machine(monkeypatch):
    with scripted_server(computed(lambda asked: {"path": asked.path})) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", "http://bob:pw@"))
        assert post("http://models.example:8000/v1/rerank") == {
            "path": "http://models.example:8000/v1/rerank"
        }
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic Ym9iOnB3"
        with scripted_server(computed(lambda asked: {"path": asked.path})) as server:
            assert post(server.url + "/x") == {"path": "/x"}
        assert len(proxy.requests) == 1


def test_many_at_once_do_not_mix():
    found = {}
    with scripted_server(computed(lambda asked: {"twice": asked.body["n"] * 2})) as server:

        def ask(number):
            found[number] = post(server.url, {"n": number})["twice"]

        each = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
        for thread in each:
            thread.start()
        for thread in each:
            thread.join()
    assert found == {number: number * 2 for number in range(5)}
