"""Keep LangGraph's checkpoints in a memory: a ``BaseCheckpointSaver`` over run states.

A checkpoint's values are stored by channel and version, so that a step stores what it changed. All
of it belongs to a thread of the memory and is erased with it. The messages of the ``messages``
channel are read into that thread once each, by their ids, where they are observed and searched.
"""

from __future__ import annotations

import asyncio
import builtins
import secrets
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

import smara
from smara.adapters.sdk.langgraph.match import check_filter, matches
from smara.adapters.sdk.langgraph.messages import new_messages
from smara.frameworks.states import RunState, StateBatch
from smara.memory import Memory
from smara.messages.models import NewThread
from smara.secrets.redact import redact_value

FRAMEWORK = "langgraph"
_CHECKPOINT, _CHANNEL, _WRITE, _RUN = "checkpoint", "channel", "write", "run"
_EMPTY = "empty"
_MOST_THREADS = 256


class SmaraSaver(BaseCheckpointSaver[str]):
    """A LangGraph checkpointer in a memory's project.

    Safe for threads, tasks and processes.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        serde: SerializerProtocol | None = None,
        is_redacted: bool = True,
    ) -> None:
        """Open the checkpoints of a memory.

        Args:
            memory: The memory; it stays open until its owner closes it.
            serde: How values become bytes; by default as LangGraph does.
            is_redacted: False to store values with the secrets in them, for a graph that must
                find them again. Messages in the thread are always redacted.
        """
        super().__init__(serde=serde)
        self._memory = memory
        self._states = memory.frameworks.states(FRAMEWORK)
        self._is_redacted = is_redacted
        self._read: OrderedDict[str, set[str]] = OrderedDict()
        self._versions: OrderedDict[tuple[str, str], ChannelVersions] = OrderedDict()

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str | None = None, **settings: Any
    ) -> Iterator[SmaraSaver]:
        """Open a memory with its checkpoints, and close it at the end.

        Args:
            conn_string: A path or a PostgreSQL URL; by default the store of this user.
            **settings: Other settings of :func:`smara.open`, such as ``project``.
        """
        with smara.open(conn_string, **settings) as memory:
            yield cls(memory)

    def setup(self) -> None:
        """Do nothing: a memory is set up when it is opened."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint of a config, or the newest of its thread."""
        with self._states.read() as batch:
            state = self._state(batch, config)
            return self._tuple(batch, state) if state is not None else None

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what was written to channels since their last stored values."""
        writes: dict[str, builtins.list[PendingWrite]] = {channel: [] for channel in channels}
        seeds: dict[str, Any] = {}
        with self._states.read() as batch:
            for state in self._ancestors(batch, config):
                open_channels = [channel for channel in channels if channel not in seeds]
                if not open_channels:
                    break
                for write in reversed(self._writes(batch, state)):
                    if write[1] in open_channels:
                        writes[write[1]].append(write)
                checkpoint = self._load(state.body["checkpoint"])
                versions = checkpoint["channel_versions"]
                named = {name: versions[name] for name in open_channels if name in versions}
                stored = checkpoint["channel_values"] | self._values(batch, state, named)
                seeds |= {name: stored[name] for name in open_channels if name in stored}
        history: dict[str, DeltaChannelHistory] = {}
        for channel in channels:
            history[channel] = {"writes": writes[channel][::-1]}
            if channel in seeds:
                history[channel]["seed"] = seeds[channel]
        return history

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints that match, newest first."""
        given = config["configurable"] if config else {}
        where = {
            column: str(given[name])
            for name, column in (
                ("thread_id", "key"),
                ("checkpoint_ns", "namespace"),
                ("checkpoint_id", "name"),
            )
            if given.get(name) is not None and (name != "checkpoint_id" or given[name])
        }
        check_filter(filter)
        with self._states.read() as batch:
            states = batch.list(
                kind=_CHECKPOINT,
                newest_first=True,
                before=get_checkpoint_id(before) if before else None,
                limit=None if filter else limit,
                **where,
            )
            chosen = [
                each
                for each in states
                if not filter or matches(self._load(each.body["metadata"]), filter)
            ]
            yield from [self._tuple(batch, each) for each in islice(chosen, limit)]

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and read its new messages into the thread."""
        key, namespace = _place(config)
        values, checkpoint_id = checkpoint["channel_values"], checkpoint["id"]
        versions = checkpoint["channel_versions"]
        unversioned = {name: value for name, value in values.items() if name not in versions}
        facts = get_checkpoint_metadata(config, metadata)
        body = {
            "parent": get_checkpoint_id(config),
            "checkpoint": self._dump({**checkpoint, "channel_values": unversioned}),
            "metadata": self._dump(facts),
        }
        state = RunState(_CHECKPOINT, namespace, checkpoint_id, "", body, key=key)
        # A checkpoint may come from elsewhere, with values that were never stored here.
        last = self._versions.pop((key, namespace), {})
        unsure = {
            name: versions[name]
            for name in values
            if name in versions and name not in new_versions and versions[name] != last.get(name)
        }
        with self._states.read() as batch:
            stored = self._values(batch, state, unsure)
        changed = new_versions | {name: unsure[name] for name in unsure if name not in stored}
        states = [state]
        states += [
            RunState(
                _CHANNEL,
                namespace,
                channel,
                repr(version),
                self._dump(values[channel]) if channel in values else (_EMPTY, ""),
            )
            for channel, version in changed.items()
        ]
        run_id = cast(Mapping[str, Any], facts).get("run_id")
        if run_id is not None:
            states.append(RunState(_RUN, str(run_id), checkpoint_id, namespace, None))
        self._states.put(key, states)
        self._versions[key, namespace] = {
            name: version for name, version in versions.items() if name in values
        }
        if len(self._versions) > _MOST_THREADS:
            self._versions.popitem(last=False)
        if namespace == "" and "messages" in changed and "messages" in values:
            self._read_messages(key, values["messages"])
        return _config(key, namespace, checkpoint_id)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote before its step was done.

        What a task wrote stays as it was first; its errors, interrupts and the like are replaced.
        """
        key, namespace = _place(config)
        checkpoint_id = get_checkpoint_id(config) or ""
        states = [
            RunState(
                _WRITE,
                namespace,
                checkpoint_id,
                f"{task_id}\x1f{WRITES_IDX_MAP.get(channel, index)}",
                {
                    "task": task_id,
                    "index": WRITES_IDX_MAP.get(channel, index),
                    "path": task_path,
                    "channel": channel,
                    "value": self._dump(value),
                },
            )
            for index, (channel, value) in enumerate(writes)
        ]
        special = [each for each in states if each.body["index"] < 0]
        self._states.put(key, [each for each in states if each not in special], replaces=False)
        if special:
            self._states.put(key, special)

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints of a thread; what was said in it stays."""
        self._versions.clear()
        with self._states.write() as batch:
            batch.delete(batch.list(key=str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs made, with their writes."""
        with self._states.write() as batch:
            for run_id in run_ids:
                places: dict[tuple[str, str], set[str]] = {}
                for each in batch.list(kind=_RUN, namespace=str(run_id)):
                    places.setdefault((each.key, each.part), set()).add(each.name)
                for (key, namespace), names in places.items():
                    self._delete(batch, key, namespace, names)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another."""
        with self._states.read() as batch:
            states = batch.list(key=str(source_thread_id))
        self._states.put(str(target_thread_id), states)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete the checkpoints of threads, but for the newest.

        The newest of each namespace stays, and those stay from which a channel of differences in it
        is rebuilt.

        Args:
            thread_ids: The threads.
            strategy: ``keep_latest`` or ``delete``.

        Raises:
            ValueError: If the strategy is unknown.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"Unknown strategy: {strategy}. Use keep_latest or delete.")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            with self._states.write() as batch:
                key, chains = str(thread_id), dict[str, builtins.list[RunState]]()
                for each in batch.list(key=key, kind=_CHECKPOINT, newest_first=True):
                    chains.setdefault(each.namespace, []).append(each)
                for namespace, chain in chains.items():
                    names = {each.name for each in chain} - self._needed(batch, chain[0])
                    self._delete(batch, key, namespace, names)

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:
        """Return a greater version; two forks never make the same one."""
        if current is None:
            number = 0
        else:
            number = current if isinstance(current, int) else int(str(current).split(".")[0])
        return f"{number + 1:032}.{secrets.randbelow(10**16):016}"

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint of a config, or the newest of its thread."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what was written to channels since their last stored values."""
        return await asyncio.to_thread(
            self.get_delta_channel_history, config=config, channels=channels
        )

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints that match, newest first."""

        def read() -> Sequence[CheckpointTuple]:
            return [*self.list(config, filter=filter, before=before, limit=limit)]

        for each in await asyncio.to_thread(read):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, and read its new messages into the thread."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote before its step was done."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints of a thread; what was said in it stays."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs made, with their writes."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete the checkpoints of threads, but for the newest."""
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    def _tuple(self, batch: StateBatch, state: RunState) -> CheckpointTuple:
        key, namespace, body = state.key, state.namespace, state.body
        checkpoint: Checkpoint = self._load(body["checkpoint"])
        values = self._values(batch, state, checkpoint["channel_versions"])
        parent = body["parent"]
        return CheckpointTuple(
            config=_config(key, namespace, state.name),
            checkpoint={**checkpoint, "channel_values": {**checkpoint["channel_values"], **values}},
            metadata=self._load(body["metadata"]),
            parent_config=_config(key, namespace, parent) if parent else None,
            pending_writes=self._writes(batch, state),
        )

    def _values(
        self, batch: StateBatch, state: RunState, versions: ChannelVersions
    ) -> dict[str, Any]:
        """Return the stored values of a checkpoint's channels."""
        values = {}
        for channel, version in versions.items():
            place = (state.key, _CHANNEL, state.namespace, channel)
            stored = batch.find(*place, part=repr(version))
            if stored is not None and stored.body[0] != _EMPTY:
                values[channel] = self._load(stored.body)
        return values

    def _writes(self, batch: StateBatch, state: RunState) -> builtins.list[PendingWrite]:
        """Return what tasks wrote at a checkpoint, in the order in which it is applied."""
        found = batch.list(key=state.key, kind=_WRITE, namespace=state.namespace, name=state.name)
        bodies = sorted(
            (each.body for each in found),
            key=lambda each: writes_sort_key(each["path"], each["task"], each["index"]),
        )
        return [(each["task"], each["channel"], self._load(each["value"])) for each in bodies]

    def _state(self, batch: StateBatch, config: RunnableConfig) -> RunState | None:
        key, namespace = _place(config)
        checkpoint_id = get_checkpoint_id(config)
        where = {"key": key, "kind": _CHECKPOINT, "namespace": namespace}
        where |= {"name": checkpoint_id} if checkpoint_id else {}
        return next(iter(batch.list(newest_first=True, limit=1, **where)), None)

    def _ancestors(self, batch: StateBatch, config: RunnableConfig) -> Iterator[RunState]:
        """Yield the checkpoints before one, nearest first, each once."""
        state, seen = self._state(batch, config), set[str]()
        while state is not None and state.body["parent"] and state.name not in seen:
            seen.add(state.name)
            place = (state.key, _CHECKPOINT, state.namespace, state.body["parent"])
            state = batch.find(*place, part="")
            if state is not None:
                yield state

    def _needed(self, batch: StateBatch, newest: RunState) -> set[str]:
        """Return the newest checkpoint, and those from which its channels are rebuilt."""
        metadata = self._load(newest.body["metadata"])
        missing = set(metadata.get("counters_since_delta_snapshot") or ())
        missing -= set(self._tuple(batch, newest).checkpoint["channel_values"])
        needed = {newest.name}
        for state in self._ancestors(batch, _config(newest.key, newest.namespace, newest.name)):
            if not missing:
                break
            needed.add(state.name)
            missing -= set(self._tuple(batch, state).checkpoint["channel_values"])
        return needed

    def _delete(self, batch: StateBatch, key: str, namespace: str, names: set[str]) -> None:
        """Delete checkpoints with their writes, and values that no other one has."""
        self._versions.clear()
        rest = [
            each
            for each in batch.list(key=key, kind=_CHECKPOINT, namespace=namespace)
            if each.name not in names
        ]
        versions = {
            (channel, repr(version))
            for each in rest
            for channel, version in self._load(each.body["checkpoint"])["channel_versions"].items()
        }
        batch.delete(
            [
                each
                for each in batch.list(key=key)
                if (
                    each.kind in (_CHECKPOINT, _WRITE)
                    and each.namespace == namespace
                    and each.name in names
                )
                or (each.kind == _RUN and each.part == namespace and each.name in names)
                or (
                    each.kind == _CHANNEL
                    and each.namespace == namespace
                    and (each.name, each.part) not in versions
                )
            ]
        )

    def _dump(self, value: Any) -> tuple[str, str]:
        kind, data = self.serde.dumps_typed(_redacted(value) if self._is_redacted else value)
        return kind, b64encode(data).decode("ascii")

    def _load(self, stored: Sequence[str]) -> Any:
        return self.serde.loads_typed((stored[0], b64decode(stored[1])))

    def _read_messages(self, key: str, messages: Any) -> None:
        """Add messages that the thread does not have yet; safe to repeat."""
        if not isinstance(messages, Iterable):
            return
        seen = self._read.setdefault(key, set())
        self._read.move_to_end(key)
        fresh = [each for each in new_messages(messages) if each.client_id not in seen]
        if fresh:
            thread = NewThread(self._states.thread_id(key))
            self._memory.messages.append_batch(thread, fresh, may_differ=True)
            seen.update(each.client_id for each in fresh if each.client_id is not None)
        if len(self._read) > _MOST_THREADS:
            self._read.popitem(last=False)


def _place(config: RunnableConfig) -> tuple[str, str]:
    given = config["configurable"]
    return str(given["thread_id"]), str(given.get("checkpoint_ns", ""))


def _config(key: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": key,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


def _redacted(value: Any) -> Any:
    """Return a value without secrets: in texts, lists, dicts and messages, however deep."""
    if isinstance(value, BaseMessage):
        fields = {"content": value.content, "additional_kwargs": value.additional_kwargs}
        if hasattr(value, "tool_calls"):
            fields["tool_calls"] = value.tool_calls
        return value.model_copy(update=redact_value(fields)[0])
    if isinstance(value, dict):
        return {key: _redacted(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_redacted(each) for each in value)
    return redact_value(value)[0] if isinstance(value, str) else value
