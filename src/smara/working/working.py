"""Read, replace and edit working-memory pages, and list their versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from smara.core.scope import WRITTEN_BY, author_of, require_id
from smara.core.validate import one_of
from smara.database.projects import ProjectContext
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.secrets import redact
from smara.working.drafts import edit_page, replace_page, template_text
from smara.working.models import (
    SCOPES,
    TEMPLATE_NAMES,
    PageDraft,
    PageKey,
    WorkingFormat,
    WorkingMemory,
    WorkingScope,
    WorkingVersion,
)
from smara.working.sanitize import INJECTION_CHARACTERS, render_block
from smara.working.store import WorkingStore

MAX_REASON_CHARACTERS = 1_000
_ALL = 2**62
_NOT_GIVEN: Any = object()

Edit = Callable[[WorkingMemory], PageDraft]


class Working:
    """The working memories of one project's resources and threads.

    Without a ``scope``, the page is the thread's when ``thread_id`` is given, else the
    resource's. ``resource_of`` tells whom a thread belongs to, when it is known.
    """

    def __init__(self, project: ProjectContext, resource_of: Callable[[str], str | None]) -> None:
        self._project = project
        self._store = WorkingStore(project.database, project.scope)
        self._settings = project.settings
        self._resource_of = resource_of

    def get(
        self,
        scope: WorkingScope | None = None,
        resource_id: str | None = None,
        thread_id: str | None = None,
    ) -> WorkingMemory:
        """Return the page; an empty template at version 0 if unwritten.

        Args:
            scope: ``resource`` or ``thread``; without it the thread's, if one is named.
            resource_id: Whose page; the configured resource by default.
            thread_id: The thread of the page.

        Returns:
            The page.

        Raises:
            InvalidInputError: The scope or an id is not one.
        """
        found = self.find(scope, resource_id, thread_id)
        return found or self._blank(self._owned(self._place(scope, resource_id, thread_id)))

    def find(
        self,
        scope: WorkingScope | None = None,
        resource_id: str | None = None,
        thread_id: str | None = None,
    ) -> WorkingMemory | None:
        """Return the page, or ``None`` if unwritten.

        Args:
            scope: ``resource`` or ``thread``; without it the thread's, if one is named.
            resource_id: Whose page; the configured resource by default.
            thread_id: The thread of the page.

        Returns:
            The page, or None.

        Raises:
            InvalidInputError: The scope or an id is not one.
        """
        row = self._store.ask(self._store.find, self._place(scope, resource_id, thread_id))
        return row[1] if row else None

    def put(
        self,
        content: str | Mapping[str, Any] | None = None,
        *,
        scope: WorkingScope | None = None,
        resource_id: str | None = None,
        thread_id: str | None = None,
        expected_version: int | None = None,
        template: str | None = None,
        schema: Mapping[str, Any] | str | None = None,
        format: WorkingFormat | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> WorkingMemory:
        """Replace the whole page; putting the same again changes nothing.

        With ``expected_version`` (0: not written yet), ``ConflictError`` when the page is at
        another version by now; without it the last writer wins, and the older version stays in the
        history. A text is Markdown, or JSON once the page is JSON; a mapping or a ``schema`` makes
        it JSON, a ``template`` or ``format="markdown"`` Markdown. The schema stays with the page
        for later changes. Without content, the page becomes the empty ``template``.

        Args:
            content: A text, or a mapping for JSON; None for the empty template.
            scope: ``resource`` or ``thread``; without it the thread's, if one is named.
            resource_id: Whose page; the configured resource by default.
            thread_id: The thread of the page.
            expected_version: Refuse to write if the page is at another version; 0 means unwritten.
            template: The name of a template, or Markdown to begin with.
            schema: The JSON Schema that the page must satisfy from now on.
            format: ``markdown`` or ``json``; by default as the content calls for.
            actor: Who writes.
            reason: Why, for the history.

        Returns:
            The page as it is now.

        Raises:
            InvalidInputError: The content is too long, does not fit its schema, or is not JSON.
            ConflictError: The page is at another version, or the thread is another resource's.
        """
        edit = replace_page(
            content,
            template,
            schema,
            format=format,
            max_characters=self._settings.working_max_characters,
        )
        return self._change(
            self._place(scope, resource_id, thread_id), edit, expected_version, actor, reason
        )

    def update(
        self,
        section: str | Mapping[str, Any],
        content: Any = _NOT_GIVEN,
        *,
        scope: WorkingScope | None = None,
        resource_id: str | None = None,
        thread_id: str | None = None,
        expected_version: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> WorkingMemory:
        """Update a part of the page; ``None`` removes it.

        Of Markdown, the body of a section or the value of a field, found by name and added
        when it is not there; see :func:`smara.working.markdown.replace_section`. Of JSON, the
        field at a path (``"stack.language"``), or a merge patch (RFC 7396) given as a mapping.

        Args:
            section: The name of a section or field, a path, or a merge patch.
            content: The new content; None takes the part out.
            scope: ``resource`` or ``thread``; without it the thread's, if one is named.
            resource_id: Whose page; the configured resource by default.
            thread_id: The thread of the page.
            expected_version: Refuse to write if the page is at another version; 0 means unwritten.
            actor: Who writes.
            reason: Why, for the history.

        Returns:
            The page as it is now.

        Raises:
            InvalidInputError: The part cannot be changed so.
            ConflictError: The page is at another version, or the thread is another resource's.
        """
        if isinstance(section, Mapping) is not (content is _NOT_GIVEN):
            raise InvalidInputError(
                "update takes a section and its content, or a mapping alone. Nothing was stored."
            )
        edit = edit_page(section, content, self._settings.working_max_characters)
        return self._change(
            self._place(scope, resource_id, thread_id), edit, expected_version, actor, reason
        )

    def history(
        self,
        scope: WorkingScope | None = None,
        resource_id: str | None = None,
        thread_id: str | None = None,
        *,
        limit: int = 50,
        before: int | None = None,
    ) -> list[WorkingVersion]:
        """Return the page's versions, newest first.

        ``before`` a version number gives the next ones.

        Args:
            scope: ``resource`` or ``thread``; without it the thread's, if one is named.
            resource_id: Whose page; the configured resource by default.
            thread_id: The thread of the page.
            limit: At most so many versions.
            before: Only versions with a smaller number.

        Returns:
            The versions.

        Raises:
            InvalidInputError: The scope or an id is not one.
        """
        if limit < 0:
            raise InvalidInputError(f"limit must not be negative; got {limit}.")
        place = self._place(scope, resource_id, thread_id)
        return self._store.ask(
            self._store.versions, place, _ALL if before is None else before, limit=limit
        )

    def get_version(
        self,
        version: int,
        *,
        scope: WorkingScope | None = None,
        resource_id: str | None = None,
        thread_id: str | None = None,
    ) -> WorkingVersion:
        """One version of the page, or ``NotFoundError``.

        Args:
            version: The number of the version.
            scope: ``resource`` or ``thread``; without it the thread's, if one is named.
            resource_id: Whose page; the configured resource by default.
            thread_id: The thread of the page.

        Returns:
            The version.

        Raises:
            NotFoundError: The page has no such version.
        """
        place = self._place(scope, resource_id, thread_id)
        found = self._store.ask(self._store.versions, place, version + 1, limit=1)
        if not found or found[0].version != version:
            raise NotFoundError(
                f"There is no version {version} of the working memory of {place.scope} "
                f"{place.key!r}. `smara working history` shows what there is.",
                version=version,
            )
        return found[0]

    def restore(
        self,
        version: int,
        *,
        scope: WorkingScope | None = None,
        resource_id: str | None = None,
        thread_id: str | None = None,
        expected_version: int | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> WorkingMemory:
        """Restore an old version as a new one.

        Its text, its template and its schema.

        Args:
            version: The number of the version.
            scope: ``resource`` or ``thread``; without it the thread's, if one is named.
            resource_id: Whose page; the configured resource by default.
            thread_id: The thread of the page.
            expected_version: Refuse to write if the page is at another version; 0 means unwritten.
            actor: Who writes.
            reason: Why, for the history.

        Returns:
            The page as it is now.

        Raises:
            NotFoundError: The page has no such version.
            ConflictError: The page is at another version, or the thread is another resource's.
        """
        place = self._place(scope, resource_id, thread_id)
        # Versions never change, so this needs no lock.
        old = self.get_version(version, scope=scope, resource_id=resource_id, thread_id=thread_id)
        draft = PageDraft(old.format, old.content, old.template, schema=old.schema)
        why = f"Version {version} is back." if reason is None else reason
        return self._change(place, lambda _: draft, expected_version, actor, why)

    def render(
        self,
        scope: WorkingScope | None = None,
        resource_id: str | None = None,
        thread_id: str | None = None,
        *,
        limit: int = INJECTION_CHARACTERS,
    ) -> str:
        """Render the page for a model, sanitized and cut.

        Args:
            scope: ``resource`` or ``thread``; without it the thread's, if one is named.
            resource_id: Whose page; the configured resource by default.
            thread_id: The thread of the page.
            limit: At most so many characters.

        Returns:
            The block; empty if the page is.

        Raises:
            InvalidInputError: The limit is too small, or an id is not one.
        """
        found = self.find(scope, resource_id, thread_id)
        return render_block(found, limit) if found else ""

    def render_by_author(self, limits: Mapping[str, int]) -> str:
        """Render the page in one block for each kind of author.

        A line belongs to the author of the version in which it appeared. Headings stand in
        every block that has lines of theirs.

        Args:
            limits: The most characters of each kind of author; see `core.scope.WRITTEN_BY`.

        Returns:
            The blocks; empty if the page is.
        """
        page = self.find()
        if page is None:
            return ""
        authors: dict[str, str] = {}
        before: set[str] = set()
        for version in reversed(self.history(limit=100)):
            lines = set(version.content.split("\n"))
            authors.update(dict.fromkeys(lines - before, author_of(version.actor)))
            before = lines
        content = _without_blanks(page)
        blocks = []
        for author, limit in limits.items():
            shown: list[str] = []
            for line in content:
                is_heading = line.startswith("#")
                if is_heading and shown and shown[-1].startswith("#"):
                    shown.pop()  # nothing of this author stands below it
                if is_heading or (line.strip() and authors.get(line, author) == author):
                    shown.append(line)
            if shown and shown[-1].startswith("#"):
                shown.pop()
            words = (line for line in shown if not line.lstrip().startswith(("#", "<!--")))
            if any(map(str.isalnum, "".join(words))):
                part = replace(page, format="markdown", content="\n".join(shown))
                blocks.append(render_block(part, limit, WRITTEN_BY[author]))
        return "\n".join(filter(None, blocks))

    def _change(
        self,
        place: PageKey,
        edit: Edit,
        expected_version: int | None,
        actor: str | None,
        reason: str | None,
    ) -> WorkingMemory:
        """Read, edit, check and write in one transaction; nothing is written when nothing would
        change.
        """
        if expected_version is not None and (
            not isinstance(expected_version, int) or expected_version < 0
        ):
            raise InvalidInputError(
                f"expected_version must be a version number, or 0; got {expected_version!r}."
            )
        who, why = (
            redact(require_id(actor or self._project.actor, "actor")).text,
            _clean_reason(reason),
        )
        owned = self._owned(place)
        now = self._project.clock.now_ms()
        with self._store.database.write() as session:
            row = self._store.hold(session, owned)
            if row is None:
                self._store.insert(session, self._project.new_id(), owned, now)
                row = self._store.hold(session, owned)
            if row is None:
                raise NotFoundError("The page vanished while it was written to. Try again.")
            no, page = row
            if place.resource_id is not None and place.resource_id != page.resource_id:
                raise ConflictError(
                    f"Thread {place.thread_id!r} belongs to resource {page.resource_id!r}, not "
                    f"{place.resource_id!r}; "
                    "nothing was stored. Leave resource_id out, or use another thread.",
                    thread_id=place.thread_id,
                )
            draft = edit(page if page.is_stored else self._blank(owned))
            # A repeated put whose first answer was lost finds its own words and is no conflict.
            if draft.is_in(page):
                return page
            if expected_version is not None and expected_version != page.version:
                raise _conflict(page, expected_version)
            self._store.save(
                session, no, page.version + 1, draft=draft, actor=who, reason=why, now_ms=now
            )
            row = self._store.find(session, owned)
        return row[1] if row else page

    def _place(
        self, scope: WorkingScope | None, resource_id: str | None, thread_id: str | None
    ) -> PageKey:
        chosen = one_of(scope or ("resource" if thread_id is None else "thread"), SCOPES, "scope")
        resource = None if resource_id is None else require_id(resource_id, "resource_id")
        if chosen == "resource":
            return PageKey(
                "resource", resource or require_id(self._settings.resource, "resource"), None
            )
        if thread_id is None:
            raise InvalidInputError(
                "The scope 'thread' needs a thread_id. Give it, or use the scope 'resource'."
            )
        return PageKey("thread", resource, require_id(thread_id, "thread_id"))

    def _owned(self, place: PageKey) -> PageKey:
        """The place with its resource: the thread's own, when the thread is known."""
        if place.thread_id is None:
            return place
        resource = (
            self._resource_of(place.thread_id) or place.resource_id or self._settings.resource
        )
        return PageKey("thread", resource, place.thread_id)

    def _blank(self, place: PageKey) -> WorkingMemory:
        text = template_text(self._settings.working_template)
        return WorkingMemory(
            None,
            place.scope,
            place.resource_id or self._settings.resource,
            thread_id=place.thread_id,
            format="markdown",
            content=text,
            template=text,
            schema=None,
            version=0,
            created_at=None,
            updated_at=None,
        )


def _clean_reason(reason: str | None) -> str | None:
    if reason is None:
        return None
    line = " ".join(reason.split())
    if len(line) > MAX_REASON_CHARACTERS:
        raise InvalidInputError(
            f"reason has {len(line):,} characters; at most {MAX_REASON_CHARACTERS:,} are kept. "
            "Say it shorter."
        )
    return redact(line).text or None


def _conflict(page: WorkingMemory, expected_version: int) -> ConflictError:
    if not page.is_stored:
        now = "it has not been written yet"
    else:
        when = datetime.fromtimestamp((page.updated_at or 0) / 1000, UTC).strftime(
            "%Y-%m-%d %H:%M:%S UTC"
        )
        now = f"it is at version {page.version}, written by {page.updated_by!r} at {when}"
    return ConflictError(
        f"You expected version {expected_version} of {page}, and {now}. Nothing was stored. Read "
        "it again, merge "
        f"your change into it, and put the result with expected_version={page.version}.",
        current_version=page.version,
        updated_by=page.updated_by,
        updated_at=page.updated_at if page.is_stored else None,
    )


def _without_blanks(page: WorkingMemory) -> list[str]:
    """Return the lines of a page without those of a template that were never filled in."""
    lines = page.content.split("\n")
    template = {
        line
        for text in (page.template or "", *map(template_text, TEMPLATE_NAMES))
        for line in text.split("\n")
    }
    return [
        line
        for line, after in zip(lines, [*lines[1:], ""], strict=True)
        # A line with something below it is a heading of its own.
        if line not in template or line.startswith("#") or after.startswith((" ", "\t"))
    ]
