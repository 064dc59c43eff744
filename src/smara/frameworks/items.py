"""Keep a framework's values, each under a name in a namespace.

A namespace is a path of labels; what is listed under a path is also what stands below it, by whole
labels. Values may expire: then they are gone at once, and `sweep` removes the rows. What an agent
put here is found by `memory.search` as source ``item``, as words of an agent: it is never told
unasked, and never as what a person said.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from smara.core.scope import require_id
from smara.database.database import Session
from smara.database.projects import ProjectContext
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.frameworks.item_store import ItemStore
from smara.frameworks.models import Item, NewItem
from smara.frameworks.store import to_json
from smara.secrets.redact import redact_value

_BATCH = 500


class FrameworkItems:
    """The values of one framework in one project.

    Safe for threads and processes.
    """

    def __init__(
        self, project: ProjectContext, *, framework: str, is_redacted: bool = True
    ) -> None:
        """Open the values of a framework.

        Args:
            project: The project they are of.
            framework: The framework's name, for example ``langgraph``.
            is_redacted: False to store values with the secrets in them.
        """
        self._project = project
        self._store = ItemStore(project.database, project.scope)
        self._framework = require_id(framework, "framework")
        self._is_redacted = is_redacted

    def prepare(
        self,
        value: Any,
        *,
        fields: Sequence[str] | None = None,
        ttl_seconds: float | None = None,
    ) -> NewItem:
        """Check and redact a value, before a transaction is opened for it.

        Args:
            value: Anything JSON can store.
            fields: The framework's names of what is searched in it; an empty list for nothing.
            ttl_seconds: How long it lives; by default for ever.

        Returns:
            The value, ready to be put.

        Raises:
            InvalidInputError: If the value cannot be written as JSON, or lives no time.
        """
        if ttl_seconds is not None and not ttl_seconds > 0:
            raise InvalidInputError("ttl_seconds must be above 0, or None for ever.")
        clean = redact_value(value)[0] if self._is_redacted else value
        try:
            text = to_json(clean)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError(
                f"A value cannot be written as JSON: {error}. Use texts, numbers, lists, dicts."
            ) from None
        return NewItem(clean, text, None if fields is None else tuple(fields), ttl_seconds)

    @contextmanager
    def read(self) -> Iterator[ItemBatch]:
        """Open values for reading; each read sees what is committed."""
        with self._project.database.read() as session:
            yield self._batch(session)

    @contextmanager
    def write(self) -> Iterator[ItemBatch]:
        """Open one transaction over values; an exception undoes all of it."""
        with self._project.database.write() as session:
            yield self._batch(session)

    def find(self, namespace: Sequence[str], name: str) -> Item | None:
        """Return an item, or ``None``."""
        with self.read() as items:
            return items.find(namespace, name)

    def get(self, namespace: Sequence[str], name: str) -> Item:
        """Return an item; raise ``NotFoundError`` if there is none."""
        item = self.find(namespace, name)
        if item is None:
            raise NotFoundError(f"No item {name!r} in {'/'.join(namespace) or 'the root'}.")
        return item

    def put(
        self,
        namespace: Sequence[str],
        name: str,
        value: Any,
        *,
        fields: Sequence[str] | None = None,
        ttl_seconds: float | None = None,
        revision: int | None = None,
    ) -> Item:
        """Put a value in place of the one of this name.

        Twice is the same as once.

        Args:
            namespace: The labels of its path.
            name: Its name there.
            value: Anything JSON can store.
            fields: The framework's names of what is searched in it; an empty list for nothing.
            ttl_seconds: How long it lives; by default for ever.
            revision: The revision that the writer has read, 0 for none; by default any.

        Returns:
            The item as it is now.

        Raises:
            InvalidInputError: If the value cannot be written as JSON.
            ConflictError: If the item has another revision by now.
        """
        new = self.prepare(value, fields=fields, ttl_seconds=ttl_seconds)
        with self.write() as items:
            return items.put(namespace, name, new, revision=revision)

    def delete(self, namespace: Sequence[str], name: str, *, revision: int | None = None) -> bool:
        """Delete an item; return False if there is none."""
        with self.write() as items:
            return items.delete(namespace, name, revision=revision)

    def list(
        self, prefix: Sequence[str] = (), *, limit: int | None = None, offset: int = 0
    ) -> builtins.list[Item]:
        """Return the items below a prefix, by namespace and name."""
        with self.read() as items:
            every = items.iterate(prefix, is_newest_first=False)
            return _slice(every, limit, offset)

    def namespaces(self, prefix: Sequence[str] = ()) -> builtins.list[tuple[str, ...]]:
        """Return the namespaces that have items, in order."""
        with self.read() as items:
            return items.namespaces(prefix)

    def sweep(self) -> int:
        """Remove the items whose time is over; return how many."""
        with self._project.database.write() as session:
            numbers = self._store.expired(session, self._framework, self._project.clock.now_ms())
            self._store.delete(session, numbers)
        return len(numbers)

    def _batch(self, session: Session) -> ItemBatch:
        return ItemBatch(session, self._store, self._project, self._framework)


class ItemBatch:
    """Reads and writes of one transaction."""

    def __init__(
        self, session: Session, store: ItemStore, project: ProjectContext, framework: str
    ) -> None:
        self.session = session
        self._store = store
        self._project = project
        self._framework = framework
        self._now = project.clock.now_ms()

    def find(self, namespace: Sequence[str], name: str) -> Item | None:
        """Return an item, or ``None``."""
        return self._store.find(self.session, self._framework, namespace, name, self._now)

    def iterate(
        self,
        prefix: Sequence[str] = (),
        *,
        is_newest_first: bool = True,
        first: int = _BATCH,
        holding: Sequence[str] = (),
    ) -> Iterator[Item]:
        """Yield the items below a prefix, read in parts.

        ``first`` is the size of the first part: who wants ten items reads ten. Items whose value
        lacks a text of ``holding`` are left out by the database; some that lack it may be there.
        """
        offset, size = 0, min(max(first, 1), _BATCH)
        while True:
            items = self._store.page(
                self.session,
                self._framework,
                prefix,
                now_ms=self._now,
                is_newest_first=is_newest_first,
                holding=holding,
                limit=size,
                offset=offset,
            )
            yield from items
            if len(items) < size:
                return
            offset, size = offset + size, _BATCH

    def list(
        self,
        prefix: Sequence[str] = (),
        *,
        includes: Callable[[Item], bool] = lambda _: True,
        holding: Sequence[str] = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> builtins.list[Item]:
        """Return the items below a prefix, newest first; see :meth:`iterate` for ``holding``."""
        first = _BATCH if limit is None else offset + limit
        every = self.iterate(prefix, first=first, holding=holding)
        return _slice(filter(includes, every), limit, offset)

    def searched_numbers(self, prefix: Sequence[str] = ()) -> builtins.list[int]:
        """Return the numbers of searchable items below a prefix, newest first."""
        return self._store.searched_numbers(self.session, self._framework, prefix, self._now)

    def by_numbers(self, numbers: Sequence[int]) -> Mapping[int, Item]:
        """Return items by number."""
        return self._store.by_numbers(self.session, numbers, self._now)

    def by_names(self, names: Sequence[str]) -> builtins.list[Item]:
        """Return the items of some names, whatever their namespaces."""
        return self._store.by_names(self.session, self._framework, names, self._now)

    def namespaces(self, prefix: Sequence[str] = ()) -> builtins.list[tuple[str, ...]]:
        """Return the namespaces that have items, in order."""
        return self._store.namespaces(self.session, self._framework, prefix, self._now)

    def put(
        self, namespace: Sequence[str], name: str, new: NewItem, *, revision: int | None = None
    ) -> Item:
        """Put a prepared value; see :meth:`FrameworkItems.put`."""
        self._require(namespace, name, revision)
        ttl = new.ttl_seconds
        item = Item(
            no=0,
            id=self._project.new_id(),
            framework=self._framework,
            namespace=tuple(namespace),
            name=name,
            value=new.value,
            fields=new.fields,
            ttl_seconds=ttl,
            expires_at=None if ttl is None else self._now + int(ttl * 1000),
            created_at=self._now,
            updated_at=self._now,
        )
        return self._store.write(self.session, item, new.text)

    def delete(self, namespace: Sequence[str], name: str, *, revision: int | None = None) -> bool:
        """Delete an item; return False if there is none."""
        self._require(namespace, name, revision)
        item = self.find(namespace, name)
        if item is not None:
            self._store.delete(self.session, [item.no])
        return item is not None

    def renew(self, items: Iterable[Item]) -> None:
        """Let items that expire live as long again as they were given."""
        self._store.renew(self.session, items, self._now)

    def put_vectors(
        self,
        item: Item,
        space: str,
        vectors: Sequence[tuple[str, int, bytes]],
        *,
        has_none: bool = False,
    ) -> None:
        """Replace an item's vectors: field, position and vector, of the framework's embedder.

        They are kept apart from ours, and by ``space`` from those of another embedder. An item
        that was just put ``has_none``.
        """
        if not has_none:
            self._store.delete_vectors(self.session, [item.no])
        self._store.add_vectors(self.session, item.no, space, vectors)

    def vectors(self, space: str, prefix: Sequence[str] = ()) -> builtins.list[tuple[int, bytes]]:
        """Return a space's vectors below a prefix, with the items' numbers."""
        return self._store.vectors_below(
            self.session, self._framework, prefix, space=space, now_ms=self._now
        )

    def vectors_of(self, numbers: Sequence[int], space: str) -> Mapping[int, bytes]:
        """Return the vectors of items that have one each, by number."""
        return self._store.vectors_of(self.session, numbers, space)

    def vector_bytes(self, space: str) -> int | None:
        """Return the length of a space's vectors; ``None`` without any."""
        return self._store.vector_bytes(self.session, space)

    def without_vectors(self, space: str, prefix: Sequence[str], limit: int) -> builtins.list[Item]:
        """Return searchable items below a prefix that lack a space's vectors."""
        return self._store.without_vectors(
            self.session, self._framework, prefix, space=space, now_ms=self._now, limit=limit
        )

    def _require(self, namespace: Sequence[str], name: str, revision: int | None) -> None:
        """Refuse a writer that has read another revision."""
        if revision is None:
            return
        self._store.hold(self.session, self._framework, namespace, name)
        item = self.find(namespace, name)
        now = 0 if item is None else item.revision
        if now != revision:
            raise ConflictError(
                f"{name!r} was changed by another writer. Read it again.", key=name, revision=now
            )


def _slice(items: Iterator[Item], limit: int | None, offset: int) -> list[Item]:
    from itertools import islice

    return list(islice(items, offset, None if limit is None else offset + limit))
