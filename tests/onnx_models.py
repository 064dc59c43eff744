"""Tiny models in the form in which real ones are published: a folder with ``model.onnx`` and
``tokenizer.json``.

``cross_encoder(folder)`` writes one that counts the words that query and text have in common; its
logit is twice their number, minus three. Its words are :data:`WORDS`; all others are the same
unknown word to it, which counts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = (
    "token",
    "refresh",
    "login",
    "panda",
    "bear",
    "retry",
    "policy",
    "how",
    "does",
    "the",
    "work",
    "a",
    "is",
)


def tokenizer(folder: Path, words: Sequence[str] = WORDS) -> None:
    """A ``tokenizer.json`` that cuts at spaces and puts pairs together as BERT does."""
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordLevel

    made = Tokenizer(
        WordLevel({word: place for place, word in enumerate([*SPECIAL, *words])}, unk_token="[UNK]")
    )
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", SPECIAL.index("[CLS]")), ("[SEP]", SPECIAL.index("[SEP]"))],
    )
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))


def cross_encoder(
    folder: Path,
    *,
    labels: int = 1,
    place: str = "model.onnx",
    extra_input: str = "",
    factor: float = 2.0,
) -> Path:
    """A folder with a cross-encoder; ``labels`` numbers come out for each pair, the last of them
    the logit.
    """
    from onnx import TensorProto, helper, save

    def constant(name, kind, values, shape):
        return helper.make_node(
            "Constant", [], [name], value=helper.make_tensor(name, kind, shape, values)
        )

    node = helper.make_node
    integers, floats = TensorProto.INT64, TensorProto.FLOAT
    nodes = [
        constant("one", integers, [1], [1]),
        constant("two", integers, [2], [1]),
        constant("sums", integers, [1, 2], [2]),
        constant("last_special", integers, [len(SPECIAL) - 1], [1]),
        constant("half", integers, [0], [1]),
        constant("factor", floats, [factor], [1]),
        constant("bias", floats, [3.0], [1]),
        constant("pads", integers, [0, labels - 1, 0, 0], [4]),
        node("Greater", ["input_ids", "last_special"], ["is_word"]),
        node("Equal", ["token_type_ids", "half"], ["is_first"]),
        node("Not", ["is_first"], ["is_second"]),
        node("And", ["is_word", "is_first"], ["of_query"]),
        node("And", ["is_word", "is_second"], ["of_text"]),
        node("Unsqueeze", ["input_ids", "two"], ["rows"]),
        node("Unsqueeze", ["input_ids", "one"], ["columns"]),
        node("Unsqueeze", ["of_query", "two"], ["query_rows"]),
        node("Unsqueeze", ["of_text", "one"], ["text_columns"]),
        node("Equal", ["rows", "columns"], ["same"]),
        node("And", ["same", "query_rows"], ["same_in_query"]),
        node("And", ["same_in_query", "text_columns"], ["shared"]),
        node("Cast", ["shared"], ["counted"], to=floats),
        node("ReduceSum", ["counted", "sums"], ["summed"], keepdims=0),
        node("Unsqueeze", ["summed", "one"], ["column"]),
        node("Mul", ["column", "factor"], ["scaled"]),
        node("Sub", ["scaled", "bias"], ["logit"]),
        node("Pad", ["logit", "pads"], ["logits"]),
    ]
    names = [
        "input_ids",
        "attention_mask",
        "token_type_ids",
        *([extra_input] if extra_input else []),
    ]
    graph = helper.make_graph(
        nodes,
        "cross-encoder",
        [helper.make_tensor_value_info(name, integers, ["batch", "length"]) for name in names],
        [helper.make_tensor_value_info("logits", floats, ["batch", labels])],
    )
    tokenizer(folder)
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        str(path),
    )
    return folder


def sentence_model(
    folder: Path,
    *,
    dims: int = 8,
    output: str = "last_hidden_state",
    extra_input: str = "",
    factor: float = 1.0,
) -> Path:
    """A folder with an embedding model: each word of :data:`WORDS` has its own direction, special
    tokens have none.

    ``sentence_embedding`` as the output gives one vector for each text, anything else one for each
    of its tokens.
    """
    from onnx import TensorProto, helper, save

    integers, floats = TensorProto.INT64, TensorProto.FLOAT
    known = len(SPECIAL) + len(WORDS)
    table = [
        factor * float(word >= len(SPECIAL) and word % dims == place)
        for word in range(known)
        for place in range(dims)
    ]
    nodes = [
        helper.make_node(
            "Constant",
            [],
            ["table"],
            value=helper.make_tensor("table", floats, [known, dims], table),
        ),
        helper.make_node(
            "Constant", [], ["one"], value=helper.make_tensor("one", integers, [1], [1])
        ),
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("ReduceSum", ["tokens", "one"], ["summed"], keepdims=0),
        helper.make_node(
            "Identity", ["summed" if output == "sentence_embedding" else "tokens"], [output]
        ),
    ]
    shape = ["batch", dims] if output == "sentence_embedding" else ["batch", "length", dims]
    names = ["input_ids", "attention_mask", *([extra_input] if extra_input else [])]
    graph = helper.make_graph(
        nodes,
        "sentence-model",
        [helper.make_tensor_value_info(name, integers, ["batch", "length"]) for name in names],
        [helper.make_tensor_value_info(output, floats, shape)],
    )
    tokenizer(folder)
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        str(folder / "model.onnx"),
    )
    return folder


def told(folder: Path, name: str, **values: object) -> None:
    """Put a file of settings into the folder of a model."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def window(folder: Path, tokens: object) -> None:
    """Say how many tokens the model of a folder reads at once."""
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"model_max_length": tokens}), encoding="utf-8"
    )
