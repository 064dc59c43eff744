"""The offline embedder: its tokenizer, its vectors, other scripts, and an installation that is
damaged.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.errors import ConfigError, MissingExtraError
from smara.models.embedders import offline
from smara.models.embedders.offline import OfflineEmbedder, Subwords
from smara.testing import open_temporary

EMBEDDER = OfflineEmbedder()
PIECES = (
    "▁",
    "t",
    "o",
    "k",
    "e",
    "n",
    "s",
    "(",
    ")",
    "重",
    "▁t",
    "en",
    "▁to",
    "ken",
    "▁token",
    "()",
)
VOCABULARY = {piece: number for number, piece in enumerate(PIECES)}


def closest(query, texts):
    return texts[int((EMBEDDER.embed(texts) @ EMBEDDER.embed([query], "query")[0]).argmax())]


# pieces


def pieces(text):
    names = {number: piece for piece, number in VOCABULARY.items()}
    return [names[number] for number in Subwords(VOCABULARY).pieces(text)]


def test_the_neighbors_whose_joint_piece_stands_first_are_joined_first():
    assert pieces("tokens") == ["▁token", "s"]


def test_a_word_starts_after_a_space_and_signs_stand_for_themselves():
    assert pieces("token() to\n\ttoken") == ["▁token", "()", "▁to", "▁token"]


def test_what_has_no_piece_is_left_out_and_a_cjk_character_stands_alone():
    assert pieces("重x重") == ["▁", "重", "重"]
    assert pieces("t☃") == ["▁t"]
    assert pieces("☃ token") == ["▁token"]
    assert pieces(" \n ") == []


@pytest.fixture(scope="module")
def reference():
    """The model's own tokenizer, as its authors publish it."""
    tokenizers = pytest.importorskip("tokenizers")
    return tokenizers.Tokenizer.from_file(str(offline._file(offline._VOCABULARY)))


@given(
    st.lists(
        st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=20), min_size=1
    )
)
def test_plain_words_are_cut_as_the_model_itself_cuts_them(reference, words):
    text = " ".join(words)
    assert EMBEDDER._model[1].pieces(text) == reference.encode(text, add_special_tokens=False).ids


def test_code_is_cut_almost_as_the_model_itself_cuts_it(reference):
    text = (
        "def refresh_tokens(self, *, max_age: int = 3600) -> list[Token]: return [t for t in "
        "self._tokens if t.age < 5]"
    )
    ours, theirs = (
        EMBEDDER._model[1].pieces(text),
        reference.encode(text, add_special_tokens=False).ids,
    )
    assert len(set(ours) & set(theirs)) >= 0.9 * len(set(theirs))


# vectors


def test_rows_have_length_one_and_blank_texts_are_zeros():
    rows = EMBEDDER.embed(["The cat sleeps.", "", " \n\t ", "x"])
    assert rows.shape == (4, 256)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1).round(5).tolist() == [1, 0, 0, 1]
    assert EMBEDDER.embed([]).shape == (0, 256)


def test_what_means_the_same_is_close_without_a_common_word():
    texts = [
        "The kitten naps on the couch.",
        "We raised the timeout of the database pool.",
        "Dinner was pasta with tomatoes.",
    ]
    assert closest("cats sleeping on a sofa", texts) == texts[0]
    assert closest("connection to PostgreSQL too slow", texts) == texts[1]
    assert closest("what did we eat in the evening", texts) == texts[2]


def test_the_first_dimensions_are_a_smaller_vector_of_their_own():
    texts = ["The kitten naps on the couch.", "We raised the timeout of the database pool."]
    rows, query = EMBEDDER.embed(texts), EMBEDDER.embed(["cats sleeping on a sofa"])[0]
    first = EMBEDDER.first_dims
    assert first < EMBEDDER.dims
    assert rows[0, :first] @ query[:first] > rows[1, :first] @ query[:first]


def test_repetition_does_not_drown_what_is_said_once():
    much, once = EMBEDDER.embed(
        ["error " * 200 + "in the payment module", "error in the payment module"]
    )
    assert float(much @ once) > 0.6


def test_a_vector_does_not_depend_on_its_neighbors_or_on_what_the_text_is_for():
    texts = [
        f"message number {number} about {topic}"
        for number, topic in enumerate(["cats", "tests", "重跑", ""] * 5)
    ]
    together = EMBEDDER.embed(texts)
    assert together.tolist() == [EMBEDDER.embed([text], "query")[0].tolist() for text in texts]
    assert together.tolist() == OfflineEmbedder().embed(texts).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "重跑失败的测试",
        "データベースの接続",
        "데이터베이스",
        "Привет, мир",
        "🎉",
        "\ud800",
        "\x00",
        "a" * 100_000,
        "é" * 50,
    ],
)
def test_any_text_gives_numbers(text):
    row = EMBEDDER.embed([text])[0]
    assert np.isfinite(row).all()
    assert float(np.linalg.norm(row)) == pytest.approx(1, abs=1e-4) or not row.any()


@given(st.text())
def test_whatever_is_written_a_row_has_length_one_or_is_zeros(text):
    length = float(np.linalg.norm(EMBEDDER.embed([text])[0].astype(np.float64)))
    assert length == pytest.approx(1, abs=1e-5) or length == 0


def test_a_text_of_an_unknown_script_is_zeros_and_not_like_every_other_of_its_kind():
    assert not EMBEDDER.embed(["ᚠᚢᚦᚨᚱᚲ"])[0].any()


def test_chinese_finds_what_shares_its_characters():
    texts = ["访问令牌的有效期是十五分钟", "妹妹在五月三日出生", "会话数据存放在里面"]
    assert closest("令牌多久过期，有效期多长", texts) == texts[0]


def test_threads_that_come_first_get_the_same_rows():
    embedder, found = OfflineEmbedder(), []
    threads = [
        threading.Thread(target=lambda: found.append(embedder.embed(["login"]).tolist()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [EMBEDDER.embed(["login"]).tolist()] * 4


# the table


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("login", [0.0649047, -0.0298203, 0.1003531, -0.0554966]),
        (
            "def refresh_token(self, secret): return store.write(secret)",
            [0.0716318, 0.0861579, 0.0106316, -0.0798477],
        ),
        ("重跑 testes für Müller", [0.0111399, 0.0689406, -0.0518799, -0.0386891]),
    ],
)
def test_vectors_are_the_ones_that_stores_already_hold(text, first):
    """Vectors of another table under the same name would be compared with those of this one."""
    values = EMBEDDER.embed([text])[0]
    assert values[:4] == pytest.approx(first, abs=1e-6)
    assert float(np.linalg.norm(values)) == pytest.approx(1.0, abs=1e-6)


def test_the_table_is_the_one_that_the_name_of_the_model_stands_for():
    table, subwords = EMBEDDER._model
    assert table.nbytes == 32_000 * 256 * 2
    assert hashlib.sha256(table.tobytes()).hexdigest() == (
        "21ac5fc44ec359347ac30b81c799a32ff33e379ae732dedfe2f8f37b29a50061"
    )
    pieces = sorted(subwords._vocabulary, key=subwords._vocabulary.__getitem__)
    assert hashlib.sha256("\n".join(pieces).encode()).hexdigest() == (
        "0f97b4337921e6e7e9b4620fc73338ee570aecd3c16038bc23870a887e995045"
    )


# a question


@pytest.mark.parametrize(
    "text",
    ["login", "What did we decide about the retries of the uploader, the uploader of logs?",
     " ".join(f"word{number} {chr(97 + number % 26)}x" for number in range(200)), "", "ᚠᚢᚦᚨᚱᚲ"],
)  # fmt: skip
def test_a_question_has_the_vector_of_its_text(text):
    question = EMBEDDER.embed_question(text)
    assert list(question) == pytest.approx(EMBEDDER.embed([text])[0].tolist(), abs=1e-6)


def test_a_short_question_is_embedded_without_numpy():
    program = (
        "import sys; from smara.models.embedders.offline import OfflineEmbedder;"
        "print(len(OfflineEmbedder().embed_question('who logs in?')), 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["256", "False"]


# the package


def test_neither_the_package_nor_numpy_is_loaded_before_it_is_asked_and_the_package_never():
    program = (
        "import sys; from smara.models.embedders.offline import OfflineEmbedder; e = "
        "OfflineEmbedder();"
        "print('numpy' in sys.modules); e.embed(['x']); print('wordllama' in sys.modules, "
        "'tokenizers' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert told.split() == ["False", "False", "False"]


def test_without_its_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(offline, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pip install"):
        OfflineEmbedder().embed(["x"])
    with open_temporary() as memory:  # opening and asking what is in force need none of it
        assert memory.models.embedder_status()["modelId"] == "wordllama-l2-256"


HEAD = {"dtype": "F16", "shape": [2, 256], "data_offsets": [0, 1024]}


def weights(head, size=1024):
    words = json.dumps({"embedding.weight": head}).encode()
    return len(words).to_bytes(8, "little") + words + bytes(size)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"nothing", (10**18).to_bytes(8, "little"), weights(HEAD, 100), weights({**HEAD,
            "dtype": "F32"}),
        weights({**HEAD, "shape": [2, 64]}), weights({}), weights([]), b"\x02" + bytes(7) + b"{}",
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_and_no_vector_is_made(content, tmp_path, monkeypatch):
    damaged = tmp_path / "weights"
    damaged.write_bytes(content)
    monkeypatch.setattr(offline, "_file", lambda name: damaged)
    with pytest.raises(ConfigError, match="force-reinstall"):
        OfflineEmbedder().embed(["x"])


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"model": 3}', "\udcff"])
def test_a_damaged_vocabulary_is_named(content, tmp_path, monkeypatch):
    real = offline._file
    damaged = tmp_path / "vocabulary"
    damaged.write_bytes(content.encode("utf-8", "surrogateescape"))
    monkeypatch.setattr(
        offline, "_file", lambda name: damaged if name == offline._VOCABULARY else real(name)
    )
    with pytest.raises(ConfigError, match="force-reinstall"):
        OfflineEmbedder().embed(["x"])
