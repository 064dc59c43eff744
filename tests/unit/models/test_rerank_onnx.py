"""A cross-encoder from a folder, with a real runtime and tiny models: scores, batches, windows,
broken folders.
"""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from smara.errors import BadReplyError, ConfigError, ModelUnavailableError
from smara.models.onnx import OnnxReranker
from smara.testing import FakeClock
from tests.onnx_models import cross_encoder, tokenizer, window

LONG = 60.0
QUERY = "how does the token refresh work"
TEXTS = ["the refresh of a token", "a panda is a bear", "TOKEN refresh"]
SCORES = [0.9526, 0.0474, 0.7311]  # 3, 0 and 2 words in common: logits of 3, -3 and 1


@pytest.fixture
def folder(tmp_path):
    return cross_encoder(tmp_path / "tiny-reranker")


def rerank(folder, texts=TEXTS, query=QUERY, **more):
    return OnnxReranker(folder, **more).rerank(query, texts, deadline_seconds=LONG)


def test_scores_come_back_in_the_order_of_the_texts(folder):
    assert rerank(folder) == pytest.approx(SCORES, abs=0.0001)
    assert OnnxReranker(folder).name == "onnx:tiny-reranker"


def test_two_numbers_for_a_pair_are_no_and_yes(tmp_path):
    assert rerank(cross_encoder(tmp_path, labels=2)) == pytest.approx(SCORES, abs=0.0001)


def test_the_model_may_stand_in_a_folder_of_its_own(tmp_path):
    assert rerank(cross_encoder(tmp_path, place="onnx/model.onnx")) == pytest.approx(
        SCORES, abs=0.0001
    )


def test_batches_and_padding_change_no_score(folder):
    texts = [" ".join(["zebra"] * length + ["token"] * (length % 2)) for length in range(21)]
    alone = [score for text in texts for score in rerank(folder, [text])]
    assert rerank(folder, texts) == pytest.approx(alone)
    assert rerank(folder, texts, at_once=4) == pytest.approx(alone)


def test_nothing_and_texts_without_words_have_scores_too(folder):
    assert rerank(folder, []) == []
    assert rerank(folder, ["", " ", "\x00\ud800", "重跑"], query="") == pytest.approx(
        [0.0474] * 4, abs=0.0001
    )


@pytest.mark.parametrize(
    ("told", "is_read"),
    [(16, False), (40, True), (10**30, True), (None, True), ("many", True), (True, True)],
)
def test_of_a_long_text_the_window_is_read(folder, told, is_read):
    window(folder, told)
    score = rerank(folder, ["zebra " * 20 + "token"], query="token")[0]
    assert score == pytest.approx(0.2689 if is_read else 0.0474, abs=0.0001)


def test_the_deadline_is_looked_at_between_batches(folder):
    """Each batch takes 4 seconds of a fake clock: of 10 seconds, three are begun."""

    class Ticking(FakeClock):
        looked = 0

        def monotonic(self):
            Ticking.looked += 1
            self.advance(4 if Ticking.looked > 1 else 0)
            return super().monotonic()

    with pytest.raises(ModelUnavailableError) as caught:
        OnnxReranker(folder, Ticking(), at_once=2).rerank(
            QUERY, ["token"] * 40, deadline_seconds=10
        )
    assert (caught.value.reason, Ticking.looked) == ("timeout", 4)


def test_several_threads_share_one_model(folder):
    reranker, found = OnnxReranker(folder), {}

    def ask(number):
        found[number] = reranker.rerank(QUERY, TEXTS, deadline_seconds=LONG)

    each = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    assert list(found.values()) == [pytest.approx(SCORES, abs=0.0001)] * 4


@pytest.mark.parametrize("factor", [float("nan"), float("inf")])
def test_a_model_that_computes_no_numbers_is_refused(tmp_path, factor):
    with pytest.raises(BadReplyError):
        rerank(cross_encoder(tmp_path, factor=factor))


def test_a_model_that_says_other_things_is_refused(tmp_path):
    with pytest.raises(BadReplyError, match="gave scores that cannot be used"):
        rerank(cross_encoder(tmp_path, labels=7))


def test_a_model_that_wants_what_no_cross_encoder_gets_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="pixel_values"):
        rerank(cross_encoder(tmp_path, extra_input="pixel_values"))


def test_a_folder_without_a_model_is_refused_at_once(tmp_path):
    for missing in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(ConfigError, match=r"model\.onnx"):
            OnnxReranker(missing)
    tokenizer(tmp_path)
    with pytest.raises(ConfigError, match=r"model\.onnx"):
        OnnxReranker(tmp_path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_broken_file_is_told_by_its_name(folder, name):
    (folder / name).write_bytes(b"\x00 nothing of the kind")
    with pytest.raises(ConfigError, match=name):
        rerank(folder)


def test_nothing_heavy_is_loaded_before_it_is_asked(folder):
    program = (
        "import sys; from smara.models.onnx import OnnxReranker; "
        f"OnnxReranker({str(folder)!r}); print([n for n in ('onnxruntime', 'tokenizers', 'numpy') "
        "if n in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[]"
