"""An embedding model from a folder: pooling, prompts, its window, its space, and folders that are
none.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

from smara.config import Settings
from smara.errors import (
    BadReplyError,
    ConfigError,
    MissingExtraError,
    ModelRefusedError,
    ModelUnavailableError,
)
from smara.models import onnx
from smara.models.choice import choose
from smara.models.onnx import OnnxEmbedder, OnnxFolder
from smara.testing import FakeClock
from tests.onnx_models import SPECIAL, WORDS, sentence_model, told

pytest.importorskip("onnxruntime")


def direction(word, dims=8):
    return (len(SPECIAL) + WORDS.index(word)) % dims


def test_texts_that_share_words_are_close(tmp_path):
    embedder = OnnxEmbedder(sentence_model(tmp_path / "tiny"))
    rows = embedder.embed(["refresh the token", "token refresh the", "panda bear"])
    assert rows.shape == (3, 8)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert float(rows[0] @ rows[1]) == pytest.approx(1)
    assert float(rows[0] @ rows[2]) < 0.5
    assert (embedder.dims, embedder.first_dims) == (8, 8)


def test_the_model_may_pool_itself(tmp_path):
    row = OnnxEmbedder(sentence_model(tmp_path, output="sentence_embedding")).embed(["login"])[0]
    assert row.argmax() == direction("login")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("pooling_mode_mean_tokens", {"login", "panda"}), ("pooling_mode_lasttoken", set())],
)
def test_tokens_are_pooled_as_the_folder_says(tmp_path, mode, expected):
    folder = sentence_model(tmp_path)
    told(folder, "1_Pooling/config.json", **{mode: True})
    embedder = OnnxEmbedder(folder)
    if not expected:  # the last token is [SEP], of which this model knows nothing
        with pytest.raises(BadReplyError, match="zeros"):
            embedder.embed(["login panda"])
        return
    row = embedder.embed(["login panda"])[0]
    assert {place for place, value in enumerate(row) if value} == {
        direction(word) for word in expected
    }


def test_what_the_folder_wants_in_front_of_a_query_is_put_there(tmp_path):
    folder = sentence_model(tmp_path)
    told(
        folder, "config_sentence_transformers.json", prompts={"query": "how does ", "document": ""}
    )
    query, document = (
        OnnxEmbedder(folder).embed(["login"], kind)[0] for kind in ("query", "document")
    )
    assert np.count_nonzero(query) == 3
    assert np.count_nonzero(document) == 1


def test_a_text_is_read_as_far_as_the_window_goes(tmp_path):
    folder = sentence_model(tmp_path)
    told(folder, "sentence_bert_config.json", max_seq_length=16)
    rows = OnnxEmbedder(folder).embed(["token " * 14 + "panda", "token"])
    assert float(rows[0] @ rows[1]) == pytest.approx(1)


@pytest.mark.parametrize("value", [None, "x", 3, 10**30, True, 1.5])
def test_an_absurd_window_is_512_tokens(tmp_path, value):
    folder = sentence_model(tmp_path)
    told(folder, "tokenizer_config.json", model_max_length=value)
    assert OnnxFolder(folder, "embedder", 2_048).window == 512


def test_a_blank_text_is_zeros_and_batches_keep_their_order(tmp_path):
    texts = ["", "login", "panda bear token refresh", " ", *WORDS]
    rows = OnnxEmbedder(sentence_model(tmp_path), at_once=2).embed(texts)
    assert rows.any(axis=1).tolist() == [False, True, True, False, *[True] * len(WORDS)]
    assert [int(row.argmax()) for row in rows[4:]] == [direction(word) for word in WORDS]


def test_another_model_or_another_pooling_is_another_space(tmp_path):
    one, same = (
        OnnxEmbedder(sentence_model(tmp_path / "a" / "tiny")),
        OnnxEmbedder(sentence_model(tmp_path / "b" / "tiny")),
    )
    other = OnnxEmbedder(sentence_model(tmp_path / "c" / "tiny", factor=2.0))
    pooled = sentence_model(tmp_path / "d" / "tiny")
    told(pooled, "1_Pooling/config.json", pooling_mode_cls_token=True)
    assert one.model_id == same.model_id
    assert one.model_id.startswith("onnx/tiny-")
    assert one.model_id.endswith("@8")
    assert len({one.model_id, other.model_id, OnnxEmbedder(pooled)._fingerprint}) == 3
    assert OnnxEmbedder(pooled)._fingerprint != one._fingerprint


def test_a_deadline_that_has_passed_ends_it_between_two_batches(tmp_path):
    class Ticking(FakeClock):
        def monotonic(self):
            self.advance(1.0)
            return super().monotonic()

    embedder = OnnxEmbedder(sentence_model(tmp_path), Ticking(), at_once=1)
    with pytest.raises(ModelUnavailableError, match="timeout"):
        embedder.embed(["login"] * 10, deadline_seconds=3.0)


def test_two_threads_that_come_first_both_get_their_rows(tmp_path):
    embedder = OnnxEmbedder(sentence_model(tmp_path))
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(embedder.embed(["login"]))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [int(rows.argmax()) for rows in found] == [direction("login")] * 4


def test_vectors_without_a_number_are_refused(tmp_path):
    with pytest.raises(BadReplyError):
        OnnxEmbedder(sentence_model(tmp_path, factor=float("nan"))).embed(["login"])


def test_a_model_that_wants_what_nobody_gives_is_named(tmp_path):
    with pytest.raises(ConfigError, match="wants position_ids"):
        OnnxEmbedder(sentence_model(tmp_path, extra_input="position_ids")).embed(["login"])


def test_a_word_the_model_has_no_row_for_is_an_error_of_the_model(tmp_path):
    folder = sentence_model(tmp_path)
    from tests.onnx_models import tokenizer

    tokenizer(folder, (*WORDS, "surplus"))
    with pytest.raises(ModelRefusedError):
        OnnxEmbedder(folder).embed(["surplus"])


def test_a_folder_without_a_model_and_a_file_that_is_none_say_what_to_do(tmp_path):
    with pytest.raises(ConfigError, match=r"holds no model\.onnx"):
        OnnxEmbedder(tmp_path)
    folder = sentence_model(tmp_path / "x")
    (folder / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="Export the model again"):
        OnnxEmbedder(folder).embed(["login"])
    folder = sentence_model(tmp_path / "y")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"tokenizer\.json"):
        OnnxEmbedder(folder).embed(["login"])


def test_the_setting_names_the_folder(tmp_path):
    found = choose(Settings(embedder=f"onnx:{sentence_model(tmp_path / 'tiny')}"))
    assert found.embedder.dims == 8
    assert found.embedder.is_local


def test_without_the_extra_it_says_which_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"smara\[onnx\]"):
        OnnxEmbedder(sentence_model(tmp_path))
