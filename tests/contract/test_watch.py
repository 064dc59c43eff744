"""What a watcher of the store sees, on both databases."""

from __future__ import annotations

from smara.surfaces.terminal.watch import Watch
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE


def shown(watch):
    return [(each.verb, each.session_id, each.text) for each in watch.look()]


def test_changes_of_the_store_are_shown_from_any_machine(memory, tmp_path):
    watch = Watch(memory, str(tmp_path / "no-spool"))
    added = memory.memories.remember("Deploys need two approvals").memory
    memory.tasks.add("Sign the webhooks")
    lines = shown(watch)
    assert ("learns", "", f"memory {added.short_id} created: Deploys need two approvals") in lines
    assert [text for verb, _, text in lines if verb == "plans"] != []
    memory.memories.forget(added.id, by="person")
    assert [verb for verb, *_ in shown(watch)] == ["learns"]
