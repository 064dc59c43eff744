"""A model from a folder, in this process: ``model.onnx`` and ``tokenizer.json``, as they are
exported and published.

Needs the extra ``onnx``. Nothing heavy is imported before the model is first asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from smara.errors import ConfigError, MissingExtraError

TOKENIZER = "tokenizer.json"
_MODELS = ("model.onnx", "onnx/model.onnx")
_WINDOWS = (
    ("sentence_bert_config.json", "max_seq_length"),
    ("tokenizer_config.json", "model_max_length"),
)
_USUAL_TOKENS = 512


class OnnxFolder:
    """A folder that holds a model. Loads it when it is first asked; safe to use from several
    threads.

    ``ConfigError`` for a folder that holds none, which ``setting`` names, and, when it is loaded,
    for broken files.
    """

    def __init__(self, folder: str | Path, setting: str, most_tokens: int) -> None:
        self.path = Path(folder).expanduser()
        self.model = self._found(setting)
        self._most_tokens = most_tokens
        self._loading = threading.Lock()
        for package in ("onnxruntime", "tokenizers"):
            if find_spec(package) is None:
                raise MissingExtraError(
                    f"A model from a folder needs {package}. Install it with `pip install "
                    '"smara[onnx]"`.',
                    package=package,
                )

    @property
    def name(self) -> str:
        return f"onnx:{self.path.name}"

    def told(self, file: str) -> dict[str, Any]:
        """What a file of settings in the folder says; nothing when it is not there or cannot be
        read.
        """
        try:
            found = json.loads((self.path / file).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def output_names(self) -> list[str]:
        return [output.name for output in self._loaded[0].get_outputs()]

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> tuple[list[Any], Any]:
        """What comes out for some texts, or pairs of them, and which places hold tokens and no
        padding.
        """
        import numpy as np

        session, tokenizer = self._loaded
        read = tokenizer.encode_batch([_readable(text) for text in texts])
        known = {
            "input_ids": [each.ids for each in read],
            "attention_mask": [each.attention_mask for each in read],
            "token_type_ids": [each.type_ids for each in read],
        }
        wanted = [put.name for put in session.get_inputs()]
        if missing := set(wanted) - set(known):
            raise ConfigError(
                f"{self.model} wants {', '.join(sorted(missing))}, which is no input of a text "
                "model."
            )
        outputs = session.run(
            None, {name: np.asarray(known[name], dtype=np.int64) for name in wanted}
        )
        return list(outputs), np.asarray(known["attention_mask"], dtype=np.float64)

    @property
    def window(self) -> int:
        """How many tokens the model reads at once; a number that is missing, or absurd as it often
        is, is 512.
        """
        for file, field in _WINDOWS:
            told = self.told(file).get(field)
            if isinstance(told, int) and not isinstance(told, bool) and 16 <= told <= 1_000_000:
                return min(told, self._most_tokens)
        return _USUAL_TOKENS

    def _found(self, setting: str) -> Path:
        model = next((self.path / name for name in _MODELS if (self.path / name).is_file()), None)
        if model is None or not (self.path / TOKENIZER).is_file():
            raise ConfigError(
                f"{self.path} holds no model.onnx with its tokenizer.json. Check the setting "
                f"{setting}."
            )
        return model

    @property
    def _loaded(self) -> tuple[Any, Any]:
        with self._loading:  # two threads that come first must not load it twice
            return self._session, self._tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime as runtime

        options = runtime.SessionOptions()
        options.log_severity_level = 3
        try:
            return runtime.InferenceSession(
                str(self.model), options, providers=["CPUExecutionProvider"]
            )
        except (
            Exception
        ) as error:  # onnxruntime has a class for every way in which a file can be wrong
            raise ConfigError(
                f"{self.model} cannot be loaded: {error}. Export the model again."
            ) from error

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        path = self.path / TOKENIZER
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises plain exceptions
            raise ConfigError(
                f"{path} cannot be read: {error}. Put the model's own tokenizer.json there."
            ) from error
        tokenizer.enable_truncation(self.window)
        padding = tokenizer.padding or {}
        # Padding on the left would move the first and the last token, which some models are pooled
        # by.
        tokenizer.enable_padding(
            direction="right",
            pad_id=padding.get("pad_id", 0),
            pad_token=padding.get("pad_token", "[PAD]"),
        )
        return tokenizer


def _readable(text: str | tuple[str, str]) -> str | tuple[str, str]:
    """Without halves of characters, which the tokenizer cannot take."""
    if isinstance(text, tuple):
        return _whole(text[0]), _whole(text[1])
    return _whole(text)


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
