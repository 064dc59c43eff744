"""What a person taught or confirmed is told for years; what was contradicted is not.

1. A person teaches one memory of every type, each about a file, or confirms what was learned.
2. The clock moves, and the daily upkeep runs. 3. Each is told at the start of a session, at its own
file, between the steps and in what hooks have prepared. 4. What the code contradicted, what was
superseded and what was forgotten is told nowhere.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import smara
from smara.knowledge.kinds import KINDS
from smara.knowledge.models import Evidence
from tests import stores
from tests.contract.memory_place import DAY, learned, taught
from tests.contract.test_freshness import Repository

DAYS = (1, 30, 180, 700)
SUBJECTS = (
    "invoices round half up", "carts expire at midnight", "mails wait for the queue",
    "refunds need two keys", "labels print in pairs", "stock counts lag behind",
    "prices hold integer cents", "coupons never stack", "taxes follow the warehouse",
    "orders keep their currency", "returns reopen the parcel", "quotes end after a week",
    "vouchers carry no name", "parcels weigh in grams", "ledgers close on Fridays",
    "tariffs load from disk",
)  # fmt: skip
SAID = dict(zip(KINDS, SUBJECTS, strict=True))


def path_of(type_: str) -> str:
    return f"src/shop/{type_}.py"


@pytest.fixture(params=stores.BOTH)
def memory(request, tmp_path, clock, monkeypatch):
    repository = Repository(tmp_path / "app")
    for type_ in KINDS:
        repository.write(path_of(type_), f"def {type_}():\n    return 1\n")
    repository.commit()
    monkeypatch.chdir(repository.root)
    with stores.empty_store(request.param, tmp_path) as address:
        place = Path(address) if request.param == "sqlite" else address
        with smara.open(place, clock=clock, embedder="off", token_model="estimate") as opened:
            yield opened


def wait(memory, clock, days: float) -> None:
    """Let days pass, with the upkeep that each day brings."""
    clock.advance(days * DAY)
    memory.memories.prune()
    memory.behavior.run_due()


def at_file(memory, session: str, path: str) -> str:
    edit = {"file_path": path, "old_string": "1", "new_string": "2"}
    told = memory.moments.before_tool(session, "Edit", edit)
    return "" if told is None else told.text


def places(memory, day: int) -> list[str]:
    """Where every memory must be told: the start, and the texts of its file's moments."""
    prepared = memory.moments.prepared(cwd=".")
    found = []
    for type_ in KINDS:
        recent = [{"tool": "Edit", "tool_input": {"file_path": path_of(type_)}}]
        between = memory.moments.between_steps(f"b{day}{type_}", 9, recent)
        hooks = [
            each.injection.text
            for each in prepared.tools
            if each.file == path_of(type_) and each.point == "before_tool" and "Edit" in each.tools
        ]
        texts = [
            memory.moments.preview().text,
            prepared.start.text if prepared.start else "",
            at_file(memory, f"f{day}{type_}", path_of(type_)),
            between.text if between else "",
            "".join(hooks),
        ]
        found += [
            f"{type_} in text {number} after {day} days"
            for number, text in enumerate(texts)
            if SAID[type_] not in text
        ]
    return found


def test_what_a_person_taught_of_every_type_is_told_for_years(memory, clock):
    for type_, words in SAID.items():
        taught(memory.memories, f"Here {words}", type=type_, files=[path_of(type_)])
    before = 0
    for day in DAYS:
        wait(memory, clock, day - before)
        before = day
        assert places(memory, day) == []


def test_what_a_person_confirmed_of_every_type_is_told_for_years(memory, clock):
    seen = [Evidence(quote="it was seen")]
    for number, (type_, words) in enumerate(SAID.items()):
        added = learned(
            memory.memories,
            f"Here {words}",
            type=type_,
            files=[path_of(type_)],
            evidence=seen,
            session_id=f"s{number}",
        )
        memory.memories.accept(added.id, by="person")
    before = 0
    for day in DAYS:
        wait(memory, clock, day - before)
        before = day
        assert places(memory, day) == []


def test_what_only_an_agent_noted_still_falls_silent_with_age(memory, clock):
    memory.memories.set_trust_level(2)
    added = learned(memory.memories, "Here carts expire at midnight", files=["src/auth.py"])
    assert "carts expire" in at_file(memory, "s1", "src/auth.py")
    wait(memory, clock, 60)
    assert at_file(memory, "s2", "src/auth.py") == ""
    wait(memory, clock, 200)
    assert memory.memories.get(added.id).deprecated_because == "pruned"


def test_what_the_code_or_a_person_contradicted_is_told_nowhere(memory, clock, monkeypatch):
    memory.code.index()
    gone = taught(memory.memories, "login gives tokens that end in x", evidence=["src/auth.py:7-8"])
    old = taught(memory.memories, "Production runs on port 5433", files=["notes.toml"])
    new = taught(memory.memories, "Production now listens elsewhere", files=["notes.toml"])
    lost = taught(memory.memories, "Retries are capped at three", files=["notes.toml"])
    memory.memories.supersede(old.id, new.id, by="person")
    memory.memories.forget(lost.id, by="person")
    Path("src/auth.py").write_text('"""Nothing is left."""\n', encoding="utf-8")
    memory.code.index()
    for days in (1, 29, 150, 520):
        wait(memory, clock, days)
        start = memory.moments.preview().text
        told = start + at_file(memory, f"a{days}", "src/auth.py")
        told += at_file(memory, f"n{days}", "notes.toml")
        assert "now listens elsewhere" in told
        for words in ("tokens that end in x", "5433", "capped at three"):
            assert words not in told
    assert memory.memories.get(gone.id).is_active


def test_age_asks_for_a_review_that_a_person_sees_and_can_answer(memory, clock):
    trap = taught(memory.memories, "Here carts expire at midnight", files=["src/auth.py"])
    wait(memory, clock, 179)
    assert memory.memories.totals().to_review == 0
    wait(memory, clock, 2)
    (asked,) = memory.memories.to_review()
    assert asked.id == trap.id
    assert asked.review_reasons == ("is it still true? not used for 181 days, half-life 60",)
    assert memory.status()["memories"]["toReview"] == 1
    accepted = memory.memories.accept(trap.id, by="person")
    assert not accepted.needs_review
    wait(memory, clock, 30)
    assert memory.memories.totals().to_review == 0


def test_age_lowers_the_place_of_what_a_person_taught(memory, clock):
    taught(memory.memories, "Here carts expire at midnight", files=["src/auth.py"])
    wait(memory, clock, 120)
    taught(memory.memories, "Here coupons never stack", files=["src/auth.py"])
    told = at_file(memory, "s1", "src/auth.py")
    assert told.index("coupons never stack") < told.index("carts expire")


def test_a_start_that_cannot_hold_all_that_a_person_taught_says_so(memory):
    for number in range(28):
        memory.memories.remember(
            f"Service alpha{number} listens on port {4000 + number} of zone {number}", type="gotcha"
        )
    assert "A person confirmed more" not in memory.moments.preview().text
    memory.memories.remember("Never push to main without asking Ana first", type="preference")
    told = memory.moments.preview().text
    assert "A person confirmed more than stands here: `smara memories list`" in told
    assert told.count("- ") == 28
    assert "asking Ana" in told
