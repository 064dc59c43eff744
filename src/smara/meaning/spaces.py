"""Which space answers: never two at once, and the old one until the new one is complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smara.meaning.models import Space

DEFAULT = "offline"
_LOCAL = ("offline", "onnx", "ollama", "given")


def answering(
    spaces: Sequence[Space], own_model_id: str | None, can_open: Callable[[Space], bool]
) -> tuple[Space | None, str]:
    """The space that questions are answered from, newest first given, and why in a sentence.

    The own one (of the embedder that this process is set to) once it is ready; until then the
    newest other that is ready and whose embedder may be opened; else the own one, as far as it is
    filled.
    """
    own = next(
        (space for space in spaces if space.model_id == own_model_id and space.state != "retired"),
        None,
    )
    if own is not None and own.state == "ready":
        return own, f"vectors of {own.model_id}"
    others = [space for space in spaces if space.state == "ready" and space is not own]
    usable = next((space for space in others if can_open(space)), None)
    if usable is not None:
        wanted = own_model_id or "the embedder that is set"
        return usable, f"vectors of {usable.model_id}, until those of {wanted} are complete"
    if own is not None:
        return own, f"vectors of {own.model_id}, which are still being made"
    if others:
        return (
            None,
            f"not used: the vectors here are of {others[0].model_id}, and this process has "
            f"{own_model_id}",
        )
    return None, "not used: nothing has a vector yet; `smara embeddings run` makes them"


def chosen_setting(spaces: Sequence[Space], setting: str) -> str:
    """The setting in force: what this process is set to, or what the project was switched to.

    A project's choice stands in the place of the default alone; a process that was told something
    else does that. And it counts only for models on this machine: nobody's text is sent away
    because of what another wrote into a store.
    """
    if setting != DEFAULT:
        return setting
    chosen = max(
        (space for space in spaces if space.chosen_at is not None),
        key=lambda each: each.chosen_at or 0,
        default=None,
    )
    return chosen.embedder if chosen is not None and is_local(chosen.embedder) else setting


def is_local(setting: str) -> bool:
    """Whether an embedder keeps texts on this machine.

    >>> [is_local(each) for each in ("offline", "ollama:qwen3-embedding:4b", "openai", "ollama:x@http://10.0.0.7")]
    [True, True, False, False]
    """
    return setting.partition(":")[0] in _LOCAL and "//" not in setting
