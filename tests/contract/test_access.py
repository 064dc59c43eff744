"""Who may ask the servers of a store: keys, codes and sessions, on both databases."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.requests import access as access_module
from smara.requests.models import CODE_SECONDS, SESSION_SECONDS, Principal
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE
NOW = 1_800_000_000_000
ANN = Principal("ann")
"""The user of a server whose key is random."""


@pytest.fixture
def access(memory):
    return memory.internals.requests.access


def test_key_is_known_by_its_secret_until_it_is_revoked(access):
    secret = access.add(Principal("ci", may_write=False, is_person=False), NOW)
    assert access.find(secret, "key", NOW) == Principal("ci", may_write=False, is_person=False)
    assert access.find(secret, "session", NOW) is None
    assert access.revoke("ci").name == "ci"
    assert access.find(secret, "key", NOW) is None
    with pytest.raises(NotFoundError, match="keys list"):
        access.revoke("ci")


def test_key_of_a_taken_name_or_of_no_project_is_refused_and_leaves_nothing(access):
    access.add(Principal("ci"), NOW)
    with pytest.raises(ConflictError, match="keys revoke"):
        access.add(Principal("ci"), NOW)
    with pytest.raises(NotFoundError, match="no project 'shpo'"):
        access.add(Principal("other", projects=("shpo",)), NOW)
    assert [each.name for each in access.list()] == ["ci"]


def test_key_is_for_the_project_of_a_name_if_only_one_has_it(memory, access):
    with memory.internals.database.write() as session:
        for name in ("shop-1a", "shop-2b", "till-3c"):
            session.run(
                "INSERT INTO projects (id, name, created_at) VALUES (?, ?, 1)", (name, name[:4])
            )
    secret = access.add(Principal("ci", projects=("till", "shop-1a")), NOW)
    found = access.find(secret, "key", NOW)
    assert found is not None
    assert found.projects == ("shop-1a", "till-3c")
    with pytest.raises(InvalidInputError, match="shop-1a, shop-2b"):
        access.add(Principal("other", projects=("shop",)), NOW)


def test_key_ends_at_its_time(access):
    secret = access.add(Principal("short", expires_at=NOW + 1), NOW)
    assert access.find(secret, "key", NOW) is not None
    assert access.find(secret, "key", NOW + 1) is None
    assert [each.name for each in access.list()] == ["short"], "it is still listed"


def test_key_of_a_project_that_was_erased_sees_no_project(place):
    with place.open(project="shop") as shop:
        access = shop.internals.requests.access
        secret = access.add(Principal("ci", projects=("shop",)), NOW)
        found = access.find(secret, "key", NOW)
        assert found is not None
        assert found.projects == ("shop",)
        shop.privacy.erase(is_everything=True)
    with place.open(project="other") as memory:
        found = memory.internals.requests.access.find(secret, "key", NOW)
    assert found is not None
    assert found.projects == (), "it is not a key for all"


def test_code_opens_one_session_in_time(access):
    code, late = access.add_code(ANN, NOW), access.add_code(ANN, NOW)
    session = access.exchange(code, NOW)
    assert session is not None
    assert access.exchange(code, NOW) is None
    assert access.exchange(late, NOW + CODE_SECONDS * 1_000) is None
    found = access.find(session, "session", NOW)
    assert found is not None
    assert (found.name, found.is_browser, found.projects) == ("ann", True, None)
    assert access.find(session, "session", NOW + SESSION_SECONDS * 1_000) is None
    access.leave(session)
    assert access.find(session, "session", NOW) is None


def holder_of(access, name: str, **rights: Any) -> Principal:
    """The holder of a new key, as a server knows it."""
    found = access.find(access.add(Principal(name, **rights), NOW), "key", NOW)
    assert found is not None
    return found


def test_browser_of_a_key_ends_with_it(access):
    ann, short = holder_of(access, "ann"), holder_of(access, "short", expires_at=NOW + 5)
    opened, brief = (access.exchange(access.add_code(each, NOW), NOW) for each in (ann, short))
    assert access.find(brief, "session", NOW + 4) is not None
    assert access.find(brief, "session", NOW + 5) is None
    code = access.add_code(ann, NOW)
    access.revoke("ann")
    assert access.find(opened, "session", NOW) is None
    assert access.exchange(code, NOW) is None
    with pytest.raises(NotFoundError, match="ended"):
        access.add_code(ann, NOW)


def test_browser_ends_with_the_own_key_of_the_server_that_opened_it(access):
    """A random key, for which there is no hash, ends with its process; its browsers go on."""
    given, random = Principal("ann", key_hash="first"), ANN
    for holder, own, other in ((given, "first", "second"), (given, "first", ""), (random, "", "x")):
        code = access.add_code(holder, NOW, own=own)
        opened = access.exchange(access.add_code(holder, NOW, own=own), NOW, own=own)
        assert access.find(opened, "session", NOW, own=own) is not None
        assert access.find(opened, "session", NOW, own=other) is None
        assert access.exchange(code, NOW, own=other) is None
        assert access.exchange(code, NOW, own=own) is not None
    with pytest.raises(NotFoundError, match="ended"):
        access.add_code(given, NOW, own="second")


def test_a_code_exchanged_during_a_revocation_opens_nothing(memory, access, monkeypatch):
    """PostgreSQL: the revocation does not see the session that is being made."""
    code = access.add_code(holder_of(access, "leaver"), NOW)
    database, insert = memory.internals.database, access_module._insert
    revocation = threading.Thread(target=access.revoke, args=("leaver",))

    def insert_late(*given: Any, **named: Any) -> None:
        revocation.start()
        if database.kind == "postgres":  # SQLite begins it afterwards
            waits = "SELECT 1 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"
            with database.autocommit() as session:
                while session.one(waits) is None and revocation.is_alive():
                    pass
        insert(*given, **named)

    monkeypatch.setattr(access_module, "_insert", insert_late)
    session = access.exchange(code, NOW)
    revocation.join()
    assert access.list() == []
    assert access.find(session, "session", NOW) is None


def test_what_ended_leaves_no_rows_and_no_secret_is_stored(memory, access):
    secrets = [access.add(Principal("ci"), NOW), access.add_code(ANN, NOW)]
    secrets.append(access.exchange(secrets[1], NOW))
    with memory.internals.database.read() as session:
        rows = session.all("SELECT hash, kind FROM access ORDER BY kind", ())
    assert [row[1] for row in rows] == ["key", "session"]
    assert not {row[0] for row in rows} & set(secrets)
    access.add_code(ANN, NOW + SESSION_SECONDS * 1_000)
    with memory.internals.database.read() as session:
        kinds = session.all("SELECT kind FROM access ORDER BY kind", ())
    assert [row[0] for row in kinds] == ["code", "key"]
