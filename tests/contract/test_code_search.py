"""Code among everything that is searched, and the file that a text is about."""

from __future__ import annotations

import pytest

from smara.errors import InvalidInputError, NotFoundError
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE

SESSIONS = '''"""Sessions of people who are logged in."""

import store


class Session:
    """One person's session."""

    def refresh_token(self, secret):
        """Give a new token before the old one expires."""
        return store.write_token(self.person, secret)

    def close(self):
        """Forget the person."""
        self.person = None
'''
STORE = '''"""Where tokens are kept."""


def write_token(person, secret):
    """Keep the token of a person."""
    return (person, secret)


def drop_walrus(person):
    """Remove everything that belongs to a person who left."""
    return None
'''
TESTS = """from app.session import Session


def test_refresh_token_gives_a_new_token():
    assert Session().refresh_token("x")
"""
GUIDE = (
    "# Sessions\n\nA session is refreshed by refresh_token before it expires; drop_walrus is "
    "for leavers.\n"
)


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    for path, text in {
        "app/session.py": SESSIONS,
        "app/store.py": STORE,
        "tests/test_session.py": TESTS,
        "docs/guide.md": GUIDE,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def indexed(memory, tree):
    memory.code.index(tree)
    memory.embeddings.embed_pending()
    return memory


def test_code_is_found_by_its_names_with_where_it_stands(indexed):
    hit = indexed.search("refresh_token", sources=["code"])[0]
    assert (hit.source, hit.files, hit.title) == ("code", ("app/session.py",), "Session")
    assert hit.why[0] == "defines refresh_token"
    assert "def refresh_token" in hit.content
    first, last = hit.metadata["firstLine"], hit.metadata["lastLine"]
    assert hit.id == hit.metadata["citation"] == f"app/session.py:{first}-{last}"
    assert "def refresh_token" in "\n".join(SESSIONS.split("\n")[first - 1 : last])
    assert hit.metadata["isStale"] is False


def test_code_is_found_by_what_it_means(indexed):
    answer = indexed.search("delete the account of somebody who quits", sources=["code"], deep=True)
    assert answer.trace.used_meaning
    assert any("drop_walrus" in hit.content for hit in answer[:3])


def test_a_question_that_names_code_is_answered_with_code_too(indexed):
    indexed.messages.add(
        thread_id="talk", role="user", content="refresh_token was slow, so we cache it"
    )
    found = indexed.search("refresh_token", 20)
    assert found[0].source == "raw"
    assert "code" in {hit.source for hit in found}


def test_a_question_in_plain_words_is_answered_by_what_was_said_alone(indexed):
    indexed.messages.add(
        thread_id="talk", role="user", content="the person who left wants everything removed"
    )
    assert {hit.source for hit in indexed.search("remove everything of a person", 20)} == {"raw"}


def test_where_nothing_that_was_said_answers_the_code_does(indexed):
    found = indexed.search("belongs to a person who left")
    assert {hit.source for hit in found} == {"code"}
    assert found[0].files == ("app/store.py",)
    assert not indexed.search("belongs to a person who left", sources=["messages"])


def test_code_of_another_project_stays_behind_the_wall(indexed):
    other = indexed.in_project("other")
    assert len(other.search("refresh_token", sources=["code"])) == 0
    with pytest.raises(NotFoundError):
        other.code.locate("refresh_token")


def test_a_changed_file_says_so_until_it_is_read_again(indexed, tree):
    with indexed._rooms.database.write() as session:
        session.run("UPDATE code_files SET stale_at = 1 WHERE path = 'app/session.py'")
    hit = indexed.search("refresh_token", sources=["code"])[0]
    assert hit.metadata["isStale"] is True
    assert "changed" in indexed.pack(indexed.search("refresh_token", sources=["code"]), 900).text
    assert indexed.code.locate("refresh_token")[0].is_stale


def test_what_is_packed_cites_file_and_lines(indexed):
    answer = indexed.search("drop_walrus", sources=["code"])
    assert f"[Code {answer[0].id}]" in indexed.pack(answer, 900).text


def test_a_citation_leads_back_to_the_piece(indexed):
    hit = indexed.search("drop_walrus", sources=["code"])[0]
    piece = indexed.code.piece(hit.id)
    assert piece is not None
    assert (piece.path, piece.name, piece.text) == ("app/store.py", "drop_walrus", hit.content)
    assert indexed.code.piece("app/store.py:1-99999") is None
    assert indexed.code.piece("no place") is None


def test_a_file_in_play_comes_first(indexed):
    plain = [hit.files[0] for hit in indexed.search("token person", sources=["code"])]
    assert {"app/session.py", "app/store.py"} <= set(plain)
    for path in ("app/session.py", "app/store.py"):
        assert indexed.search("token person", sources=["code"], files=[path])[0].files == (path,)


def test_an_issue_leads_to_the_file_that_defines_what_it_names(indexed):
    issue = (
        "Session.refresh_token loses the secret\n\nAfter `refresh_token(secret)` the token is gone."
    )
    found = indexed.code.locate(issue)
    assert found[0].path == "app/session.py"
    weak = indexed.code.locate("zxqvbnm of the walrus drifts away from the token in Paris")
    assert weak[0].score < 0.2 < found[0].score, "a score means the same in every answer"
    assert found[0].name == "Session"
    assert found[0].citation.startswith("app/session.py:")
    assert any("defines" in reason for reason in found[0].why)
    assert all("tests/" not in each.path and "docs/" not in each.path for each in found)
    assert "tests/test_session.py" in {each.path for each in indexed.code.locate(issue, tests=True)}


def test_words_alone_say_nothing_of_definitions(indexed):
    assert not any(
        "defines" in reason
        for each in indexed.code.locate("Session", graph=False)
        for reason in each.why
    )


def test_locating_takes_any_text_and_bounds_its_answer(indexed):
    for text in ("", " \n", "`" * 5_000, "x" * 200_000, "the of and", "\x00\ud800", "a.b" * 40_000):
        assert isinstance(indexed.code.locate(text, 3), list)
    assert len(indexed.code.locate("token", 1)) == 1
    for limit in (0, 1_001, True):
        with pytest.raises(InvalidInputError):
            indexed.code.locate("token", limit)


def test_without_an_index_locating_says_what_to_do_and_search_finds_nothing(memory):
    with pytest.raises(NotFoundError, match="`smara code index` does it"):
        memory.code.locate("token")
    assert len(memory.search("refresh_token", sources=["code"])) == 0


def test_a_rebuilt_text_index_finds_code_again(indexed):
    indexed.internals.index.rebuild()
    assert indexed.internals.index.problems(deep=True) == []
    assert indexed.search("refresh_token", sources=["code"])[0].files == ("app/session.py",)


def test_code_waits_for_its_vectors_behind_everything_else(memory, tree):
    memory.code.index(tree)
    memory.messages.add(thread_id="talk", role="user", content="written after the code")
    assert memory.embeddings.embed_pending(limit=1).embedded == 1
    vectors = memory.embeddings.status().spaces[0].vectors
    assert (vectors["message"], vectors["code"]) == (1, 0)
