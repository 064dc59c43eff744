"""Memories and observations that name code: every verdict, for the folder that asks, and what is
done about it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from smara.codegraph.anchors import disk
from smara.codegraph.anchors.disk import marked
from smara.knowledge.review import GRACE_DAYS
from tests.contract.both import EACH_DATABASE
from tests.contract.memory_place import DAY, taught

pytestmark = EACH_DATABASE

AUTH = '''\
"""Who may come in."""

LIMIT = 5


class Session:
    def login(self, name):
        token = name + "x"
        self.tokens[name] = token
        return token

    def logout(self):
        self.token = None


def count_up(first):
    second = first + 1
    third = second * 2
    return third
'''
SAYS = "Whoever logs in gets a token that ends in x"


class Repository:
    """A working folder under git, and what is saved in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("src/auth.py", AUTH)
        self.write("notes.toml", "[limits]\nlogins = 5\nretries = 3\n\n[paths]\nhome = 'x'\n")
        self.commit()

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *who, *arguments], cwd=self.root, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def change(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text
        self.write(path, text.replace(old, new))

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", "a change")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    found = Repository(tmp_path / "app")
    monkeypatch.chdir(found.root)
    return found


@pytest.fixture
def memory(place, repository):
    opened = place.open(embedder="off")
    opened.code.index()
    return opened


def told(memory, saved, text=SAYS, **fields):
    """A memory that rests on the lines of ``login``."""
    fields = {"evidence": ["src/auth.py:7-8"], **fields}
    added = memory.memories.add(text, type="gotcha", source="user_taught", by="person", **fields)
    assert added.memory is not None, added.why
    return added.memory


def stands(memory, known):
    return memory.memories.freshness([known])[known.id]


# the verdicts


def test_a_memory_is_anchored_to_the_definition_around_the_lines_it_rests_on(memory, repository):
    found = stands(memory, told(memory, repository))
    assert (found.verdict, found.telling, found.hedge) == ("fresh", "tell", None)
    assert [(each.was, each.first_line, each.last_line) for each in found.anchors] == [
        ("src/auth.py:Session.login", 7, 10)
    ]
    assert found.anchors[0].commit == repository.git("rev-parse", "HEAD")


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_change_elsewhere_in_the_file_leaves_it_fresh(memory, repository, is_indexed):
    known = told(memory, repository)
    repository.change("src/auth.py", "LIMIT = 5", "# more\nLIMIT = 6\n\nOTHER = 1")
    if is_indexed:
        memory.code.update(["src/auth.py"])
    found = stands(memory, known)
    assert (found.verdict, found.anchors[0].first_line) == ("fresh", 10)


def test_layout_comments_and_quotes_are_no_change(memory, repository):
    known = told(memory, repository)
    repository.change("src/auth.py", 'token = name + "x"', "token = name + 'x'  # the end\n")
    assert stands(memory, known).verdict == "fresh"


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_changed_body_has_drifted_and_is_told_with_how_much_differs(
    memory, repository, is_indexed
):
    known = told(memory, repository)
    repository.change("src/auth.py", 'name + "x"', 'hashed(name) + "y"')
    if is_indexed:
        memory.code.update(["src/auth.py"])
    found = stands(memory, known)
    assert (found.verdict, found.telling, found.anchors[0].now) == (
        "drifted",
        "hedge",
        "src/auth.py:Session.login",
    )
    assert 0 < found.changed < 0.6
    assert "% of it differs (src/auth.py:Session.login)" in found.hedge


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_renamed_function_has_moved(memory, repository, is_indexed):
    known = told(memory, repository)
    repository.change("src/auth.py", "def login", "def enter")
    if is_indexed:
        memory.code.update(["src/auth.py"])
    found = stands(memory, known)
    assert (found.verdict, found.hedge) == (
        "moved",
        "src/auth.py:Session.login is now src/auth.py:Session.enter",
    )


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_renamed_file_has_moved_before_and_after_it_is_indexed(memory, repository, is_indexed):
    known = told(memory, repository)
    repository.git("mv", "src/auth.py", "src/login.py")
    if is_indexed:
        memory.code.index()
    found = stands(memory, known)
    assert (found.verdict, found.anchors[0].now) == ("moved", "src/login.py:Session.login")


def test_a_file_that_was_renamed_and_changed_is_followed(memory, repository):
    known = told(memory, repository)
    repository.git("mv", "src/auth.py", "src/login.py")
    repository.change("src/login.py", 'name + "x"', 'name + "y"')
    found = stands(memory, known)
    assert (found.verdict, found.anchors[0].now) == ("drifted", "src/login.py:Session.login")


@pytest.mark.parametrize("is_indexed", [False, True])
def test_what_is_gone_is_orphaned_and_withheld(memory, repository, is_indexed):
    known = told(memory, repository)
    (repository.root / "src/auth.py").unlink()
    if is_indexed:
        memory.code.index()
    found = stands(memory, known)
    assert (found.verdict, found.telling) == ("orphaned", "withhold")
    assert found.hedge == "the code it speaks of is gone: src/auth.py:Session.login"


def test_a_body_that_moved_into_a_file_nobody_has_read_is_not_called_gone(memory, repository):
    known = told(memory, repository)
    cut = AUTH.partition("class Session")
    repository.write("src/auth.py", cut[0])
    repository.write("src/sessions.py", cut[1] + cut[2])
    assert stands(memory, known).anchors[0].now == "src/sessions.py:Session.login"


def test_beyond_the_bound_of_a_question_a_verdict_is_unknown_and_never_guessed(place, repository):
    memory = place.open(embedder="off", freshness_read_files=0)
    memory.code.index()
    known = told(place.open(embedder="off"), repository)
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    found = stands(memory, known)
    assert (found.verdict, found.telling, found.needs_review) == ("unknown", "hedge", False)
    memory.code.update(["src/auth.py"])
    assert stands(memory, known).verdict in (
        "drifted",
        "unknown",
    )  # a file just saved is not trusted by its time


def test_lines_outside_of_any_definition_are_followed_by_their_text(memory, repository):
    known = told(
        memory,
        repository,
        "Logins are limited to five by the configuration",
        evidence=["notes.toml:1-2"],
    )
    repository.change("notes.toml", "[limits]", "# first\n\n[limits]")
    found = stands(memory, known)
    assert (found.verdict, found.anchors[0].first_line) == ("fresh", 3)
    repository.change("notes.toml", "logins = 5", "logins = 7")
    assert stands(memory, known).verdict == "drifted"


# what is named


def test_names_in_the_words_are_anchored_when_only_one_thing_has_them(memory, repository):
    repository.write(
        "src/other.py", "def login():\n    return 1\n\n\ndef shut_down(now):\n    return now\n"
    )
    memory.code.index()
    known = told(
        memory, repository, "Call `shut_down` before `login`, and Session.logout after", evidence=[]
    )
    assert {each.was for each in stands(memory, known).anchors} == {
        "src/other.py:shut_down",
        "src/auth.py:Session.logout",
    }


def test_a_name_that_two_have_is_known_by_the_file_that_is_named(memory, repository):
    repository.write("src/other.py", "def login():\n    return 1\n")
    memory.code.index()
    known = told(
        memory,
        repository,
        "The function `login` is only for tests",
        evidence=[],
        files=["src/other.py"],
    )
    assert [each.was for each in stands(memory, known).anchors] == ["src/other.py:login"]


def test_what_names_nothing_of_this_folder_has_no_verdict(memory, repository):
    known = told(
        memory,
        repository,
        "Deploy on Mondays with `deploy_all`",
        evidence=[],
        files=["else/where.py"],
    )
    assert memory.memories.freshness([known]) == {}
    assert memory.memories.why(known.id).code is None


def test_evidence_at_a_commit_is_anchored_to_the_code_of_that_commit(memory, repository):
    old = repository.git("rev-parse", "HEAD")
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    repository.commit()
    memory.code.index()
    known = told(memory, repository, evidence=[f"src/auth.py@{old}:7-8"])
    found = stands(memory, known)
    assert (found.verdict, found.anchors[0].commit) == ("drifted", old)


def test_memories_that_were_there_before_the_index_are_anchored_to_the_code_of_their_day(
    place, repository, clock
):
    memory = place.open(embedder="off")
    clock.set(1_900_000_000_000)
    known = told(memory, repository, "The method `Session.logout` forgets the token", evidence=[])
    assert memory.memories.freshness([known]) == {}
    repository.change("src/auth.py", "self.token = None", "self.tokens.clear()")
    repository.git("add", "-A")
    when = "2031-01-01T00:00:00Z"
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "later"],
        cwd=repository.root,
        check=True,
        env={
            "GIT_COMMITTER_DATE": when,
            "GIT_AUTHOR_DATE": when,
            "PATH": "/usr/bin:/bin:/usr/local/bin",
        },
    )
    memory.code.index()
    assert stands(memory, known).verdict == "drifted"


# without an index


def test_without_an_index_files_alone_are_judged(place, repository):
    memory = place.open(embedder="off")
    known = told(memory, repository, files=["src/auth.py"], evidence=[])
    assert [(each.was, each.verdict) for each in stands(memory, known).anchors] == [
        ("src/auth.py", "fresh")
    ]
    repository.write("src/auth.py", "\n".join(f"line_{number} = {number}" for number in range(20)))
    assert stands(memory, known).verdict == "drifted"
    (repository.root / "src/auth.py").unlink()
    assert stands(memory, known).verdict == "orphaned"


def test_the_lines_of_a_file_are_marked_only_when_it_has_changed(place, repository, monkeypatch):
    memory = place.open(embedder="off")
    known = told(memory, repository, files=["src/auth.py"], evidence=[])
    count = []
    monkeypatch.setattr(disk, "marked", lambda data: count.append(data) or marked(data))
    assert (stands(memory, known).verdict, len(count)) == ("fresh", 0)
    repository.write("src/auth.py", "LIMIT = 6\n")
    assert (stands(memory, known).verdict, len(count)) == ("drifted", 1)


def test_without_an_index_a_renamed_file_is_known_by_git(place, repository):
    memory = place.open(embedder="off")
    known = told(memory, repository, files=["src/auth.py"], evidence=[])
    repository.git("mv", "src/auth.py", "src/login.py")
    repository.commit()
    assert stands(memory, known).anchors[0].now == "src/login.py"


# a reading changes nothing; a person's word does


def rows(memory):
    tables = (
        "memories",
        "memory_events",
        "code_anchors",
        "code_anchored",
        "code_files",
        "code_nodes",
    )
    with memory._rooms.database.read() as session:
        return [session.all(f"SELECT * FROM {name} ORDER BY 1, 2, 3") for name in tables]


def test_reading_in_every_way_changes_nothing(memory, repository):
    known = told(memory, repository)
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    before = rows(memory)
    memory.memories.freshness([known])
    memory.memories.why(known.id)
    memory.memories.audit()
    memory.memories.confidence(known)
    memory.memories.for_files(["src/auth.py"], is_injectable_only=True)
    memory.pack(memory.search("token"), is_unasked=True)
    memory.search_memories("token")
    assert rows(memory) == before


def test_a_person_who_verifies_anchors_it_to_the_code_of_today(memory, repository, clock):
    known = told(memory, repository)
    repository.change(
        "src/auth.py", "LIMIT = 5", "LIMIT = 5\nA = 1\nB = 2\nC = 3\nD = 4\nE = 5\nF = 6\nG = 7"
    )
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    assert stands(memory, known).verdict == "drifted"
    clock.advance(1)
    memory.memories.verify(known.id)
    found = stands(memory, known)
    assert (found.verdict, found.anchors[0].was) == ("fresh", "src/auth.py:Session.login")


def test_what_it_was_anchored_to_before_stays_as_history_and_comes_back_with_undo(
    memory, repository, clock
):
    known = told(memory, repository)
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    clock.advance(1_000)
    memory.memories.verify(known.id)
    assert stands(memory, known).verdict == "fresh"
    clock.advance(1_000)
    memory.memories.undo(known.id, by="person")
    assert stands(memory, known).verdict == "drifted"


def test_use_and_edits_by_agents_do_not_anchor_it_anew(memory, repository):
    known = memory.memories.add(
        SAYS, type="gotcha", session_id="s", evidence=["src/auth.py:7-8"]
    ).memory
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    memory.memories.used(known.id, "helped")
    memory.memories.update(known.id, content="Whoever logs in gets a token that ends in x, always")
    assert stands(memory, known).verdict == "drifted"


def test_anchors_go_with_the_memory_that_is_removed_for_good(memory, repository, clock):
    known = memory.memories.add(
        SAYS, type="gotcha", session_id="s", evidence=["src/auth.py:7-8"]
    ).memory
    memory.memories.forget(known.id)
    clock.advance((GRACE_DAYS + 1) * DAY)
    assert memory.memories.prune().deleted == (known.short_id,)
    with memory._rooms.database.read() as session:
        left = [
            session.one(f"SELECT count(*) FROM {name}")[0]
            for name in ("code_anchors", "code_anchored")
        ]
    assert left == [0, 0]


# what is told, and what is asked


def test_what_drifted_is_hedged_in_what_is_told_and_less_sure(memory, repository):
    known = told(memory, repository)
    sure = memory.memories.confidence(known).value
    repository.change("src/auth.py", 'name + "x"', 'hashed(name) + "y"')
    [hit] = memory.search("token ends", sources=["memories"])
    assert (hit.metadata["freshness"], hit.is_trusted) == ("drifted", True)
    assert hit.metadata["confidence"] < sure
    packed = memory.pack(memory.search("token ends", sources=["memories"]), is_unasked=True)
    assert "the code has changed since" in packed.text


def test_what_is_orphaned_is_found_by_search_and_withheld_unasked(memory, repository):
    known = told(memory, repository)
    assert memory.memories.for_files(["src/auth.py"], is_injectable_only=True) == []
    (repository.root / "src/auth.py").unlink()
    answer = memory.search("token ends", sources=["memories"])
    assert [hit.metadata["freshness"] for hit in answer] == ["orphaned"]
    packed = memory.pack(answer, is_unasked=True)
    assert (packed.text, [hit.id for hit in packed.withheld]) == ("", [known.id])
    assert not memory.memories.may_inject(known).allowed
    assert memory.search_memories("token ends")[0].code.verdict == "orphaned"


def test_the_policy_can_tell_hedge_or_withhold(place, repository):
    memory = place.open(embedder="off", freshness_drifted="withhold", freshness_orphaned="hedge")
    memory.code.index()
    known = told(memory, repository)
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    assert not memory.memories.may_inject(known).allowed
    (repository.root / "src/auth.py").unlink()
    assert stands(memory, known).telling == "hedge"


def test_a_moved_file_is_shown_by_its_name_of_today(memory, repository):
    told(memory, repository, files=["src/auth.py"])
    repository.git("mv", "src/auth.py", "src/login.py")
    [hit] = memory.search("token ends", sources=["memories"])
    assert hit.files == ("src/login.py",)


def test_an_index_that_changes_queues_what_drifted_and_lets_go_what_is_as_it_was(
    memory, repository
):
    known = told(memory, repository)
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    memory.code.update(["src/auth.py"])
    [waiting] = memory.memories.to_review()
    assert waiting.id == known.id
    assert waiting.review_reasons[0].startswith("the code has changed since")
    repository.change("src/auth.py", 'name + "y"', 'name + "x"')
    memory.code.update(["src/auth.py"])
    assert list(memory.memories.to_review()) == []


def test_a_review_that_others_ask_for_stays(memory, repository):
    known = memory.memories.add(
        SAYS, type="gotcha", session_id="s", evidence=["src/auth.py:7-8"]
    ).memory
    asked = known.review_reasons
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    memory.memories.check_code()
    assert len(memory.memories.get(known.id).review_reasons) == len(asked) + 1
    repository.change("src/auth.py", 'name + "y"', 'name + "x"')
    memory.memories.check_code()
    assert memory.memories.get(known.id).review_reasons == asked


def test_the_audit_counts_what_drifted_as_stale(memory, repository):
    told(memory, repository)
    taught(memory.memories, "Deploy on Mondays, never on Fridays")
    assert memory.memories.audit().stale.count == 0
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    found = memory.memories.audit().stale
    assert (found.count, found.share) == (1, 0.5)
    assert "the code has changed since" in found.examples[0].why


# trees


def test_two_worktrees_get_two_verdicts_on_one_memory(memory, repository, monkeypatch, tmp_path):
    known = told(memory, repository)
    repository.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "worktree"))
    (tmp_path / "worktree" / "src/auth.py").write_text(AUTH.replace('name + "x"', 'name + "y"'))
    assert stands(memory, known).verdict == "fresh"
    monkeypatch.chdir(tmp_path / "worktree")
    assert stands(memory, known).verdict == "drifted"
    memory.code.index()
    assert stands(memory, known).verdict == "drifted"
    monkeypatch.chdir(repository.root)
    assert stands(memory, known).verdict == "fresh"


def test_a_branch_that_is_switched_changes_the_verdict_and_back(memory, repository):
    known = told(memory, repository)
    repository.git("switch", "-qc", "other")
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    repository.commit()
    assert stands(memory, known).verdict == "drifted"
    repository.git("switch", "-q", "main")
    assert stands(memory, known).verdict == "fresh"


def test_another_repository_says_nothing_about_it(memory, repository, monkeypatch, tmp_path):
    known = told(memory, repository)
    other = Repository(tmp_path / "other")
    other.write("src/auth.py", "nothing = 1\n")
    monkeypatch.chdir(other.root)
    memory.code.index()
    assert memory.memories.freshness([known]) == {}


def test_a_server_elsewhere_means_the_folder_that_was_indexed(
    memory, repository, monkeypatch, tmp_path
):
    known = told(memory, repository)
    (tmp_path / "nowhere").mkdir()
    monkeypatch.chdir(tmp_path / "nowhere")
    assert stands(memory, known).verdict == "fresh"


def test_nothing_outside_of_the_folder_is_anchored(memory, repository, tmp_path):
    (tmp_path / "secret.py").write_text("def key():\n    return 1\n")
    (repository.root / "link.py").symlink_to(tmp_path / "secret.py")
    for path in ("../secret.py", str(tmp_path / "secret.py"), "link.py", "src/../../secret.py"):
        known = told(
            memory,
            repository,
            f"What stands in number {len(path)} is a key",
            evidence=[f"{path}:1-2"],
        )
        assert memory.memories.freshness([known]) == {}


def test_another_project_sees_none_of_it(memory, repository):
    known = told(memory, repository)
    assert memory.in_project("other").memories.freshness([known]) == {}


# observations


@pytest.fixture
def noted(memory, repository):
    """An observation that names ``login``, anchored as a worker would."""
    memory.messages.add(
        thread_id="t",
        role="user",
        content="Remember: `Session.login` in src/auth.py must never print the token.",
    )
    assert memory.observations.observe("t").success
    assert memory.internals.upkeep.anchor_pending() > 0
    return "never print the token"


def test_an_observation_is_anchored_by_a_worker_and_judged_when_it_is_found(
    memory, repository, noted
):
    [hit] = memory.search(noted, sources=["observations"])
    assert (hit.metadata["freshness"], "hedge" in hit.metadata) == ("fresh", False)
    repository.change("src/auth.py", 'name + "x"', 'name + "y"')
    [hit] = memory.search(noted, sources=["observations"])
    assert hit.metadata["freshness"] == "drifted"
    assert "src/auth.py:Session.login" in hit.metadata["hedge"]


def test_an_observation_that_is_listed_tells_what_became_of_its_code(memory, repository, noted):
    [known] = memory.observations.list(thread_id="t")
    assert memory.observations.freshness([known])[known.id].verdict == "fresh"
    repository.change("src/auth.py", "def login(", "def enter(")
    assert memory.observations.freshness([known])[known.id].verdict == "moved"
    repository.write("src/auth.py", "")
    found = memory.observations.freshness([known])[known.id]
    assert (found.verdict, [each.was for each in found.anchors]) == (
        "orphaned",
        ["src/auth.py:Session.login"],
    )
    assert memory.observations.freshness([]) == {}


def test_what_was_anchored_once_is_not_looked_at_again(memory, noted):
    assert memory.internals.upkeep.anchor_pending() == 0
    memory.code.index()
    assert memory.internals.upkeep.anchor_pending() == 0


# what agents are told unasked


def test_a_session_is_told_what_has_changed_since_and_nothing_of_code_that_is_gone(
    memory, repository
):
    told(memory, repository, files=["src/auth.py"])
    assert "has changed" not in memory.moments.start("s1").text
    repository.change("src/auth.py", 'name + "x"', 'hashed(name) + "y"')
    for said in (
        memory.moments.start("s2"),
        memory.moments.after_tool("s3", "Read", {"file_path": "src/auth.py"}),
    ):
        assert "(the code has changed since: " in said.text
    (repository.root / "src/auth.py").unlink()
    repository.write("src/other.py", "LIMIT = 7\n")
    memory.code.index()
    assert memory.moments.start("s4") is None
    assert memory.moments.before_tool("s4", "Edit", {"file_path": "src/auth.py"}) is None
