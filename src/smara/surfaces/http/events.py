"""Send what happens in a project as server-sent events.

However many clients watch a project, one poller reads its feed: a few look-ups by key, twice a
second while a client watches, and at once after a write of this server. A client that comes back
names the last event it saw (``Last-Event-ID``) and gets what it missed from the store, also from a
server that was started since. One that is too far behind, or reads too slowly, is told to load
again what it shows.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import regex
from smara.errors import SmaraError
from smara.feed.models import FeedEvent, FeedPage, read_cursor, write_cursor
from smara.surfaces.http.api import Api, Caller
from smara.surfaces.http.problem import Refusal

MOST_WATCHERS = 512
MOST_MISSED = 5_000
_MOST_WAITING = 500
_MOST_SEEN = 2_000
_POLL_SECONDS = 0.5
_BEAT_SECONDS = 15.0
_PAGE = 1_000
_LATE = 50
_RESET = b"event: reset\ndata: {}\n\n"
_NAME = regex(rb"(?m)^event: .*\n")


@dataclass(eq=False)
class Subscriber:
    """One client, and what it has not been sent yet."""

    queue: asyncio.Queue[bytes | None] = field(
        default_factory=lambda: asyncio.Queue(_MOST_WAITING + 2)
    )

    name: str = ""
    """The one name of all events, for a page that follows every kind."""

    def put(self, pieces: list[bytes]) -> bool:
        """Queue pieces; return False if the client is too slow."""
        if self.queue.qsize() + len(pieces) > _MOST_WAITING:
            return False
        for each in pieces:
            self.queue.put_nowait(each)
        return True


class Channel:
    """The watchers of one project, and the one that reads for them."""

    def __init__(self, read: Callable[[str | None], Awaitable[FeedPage]], is_late: bool) -> None:
        self._read = read
        self._is_late = is_late
        self.watchers: set[Subscriber] = set()
        self.polls = 0
        self._places: dict[str, int] = {}
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def add(self, watcher: Subscriber, after: str | None) -> None:
        """Add a watcher, with what it missed since a cursor."""
        is_first = not self.watchers
        if is_first:
            self._places = read_cursor((await self._read(None)).cursor)
        self.watchers.add(watcher)  # first, so that nothing falls between
        missed: list[bytes] = []
        cursor = after
        while cursor is not None:
            page = await self._read(cursor)
            missed += pieces_of(page, cursor)
            if is_first:
                self._seen.update((each.key, None) for each in page)
            cursor = page.cursor if len(page) >= _PAGE and len(missed) < MOST_MISSED else None
        while not watcher.queue.empty():  # what came meanwhile goes behind what was missed
            missed.append(watcher.queue.get_nowait() or _RESET)
        if len(missed) >= _MOST_WAITING:
            missed = [_RESET]
        # Only one who missed nothing stands at the newest place.
        place = "" if missed else f"id: {write_cursor(self._places)}\n"
        watcher.put([f"retry: 1000\n{place}\n".encode(), *missed])
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll())

    def remove(self, watcher: Subscriber) -> None:
        """Forget a watcher; the last ends the reading."""
        self.watchers.discard(watcher)

    def wake(self) -> None:
        """Look now: something was written."""
        self._wake.set()

    def close(self) -> None:
        """End the streams of all watchers."""
        for each in self.watchers:
            with suppress(asyncio.QueueFull):
                each.queue.put_nowait(None)
        self.watchers.clear()
        self._wake.set()

    async def _poll(self) -> None:
        while self.watchers:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _POLL_SECONDS)
            self._wake.clear()
            with suppress(SmaraError):  # a store that is busy is asked again
                await self._look()

    async def _look(self) -> None:
        self.polls += 1
        # On a server two transactions may end in another order than their numbers: what came late
        # is looked for again.
        late = _LATE if self._is_late else 0
        start = write_cursor({name: max(0, no - late) for name, no in self._places.items()})
        page = await self._read(start)
        new = [each for each in page if self._is_new(each)]
        if not new:
            return
        pieces = []
        for each in new:
            self._seen[each.key] = None
            letter, no = each.key[0], int(each.key[1:])
            self._places[letter] = max(self._places[letter], no)
            pieces.append(piece_of(each, write_cursor(self._places)))
        while len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        for watcher in [each for each in self.watchers if not each.put(pieces)]:
            # It gets what it missed when it comes back.
            watcher.queue.put_nowait(None)
            self.watchers.discard(watcher)
        if len(page) >= _PAGE:
            self._wake.set()

    def _is_new(self, event: FeedEvent) -> bool:
        if event.key in self._seen:
            return False
        return self._is_late or int(event.key[1:]) > self._places[event.key[0]]


def name_of(wish: str) -> str:
    """Return the name that a client gives to all events.

    Raises:
        Refusal: If it is not one word of small letters.
    """
    if wish and not (wish.isascii() and wish.isalpha() and wish.islower() and len(wish) < 32):
        raise Refusal(400, "wrong_name", "Give `as` one word of small letters.")
    return wish


def piece_of(event: FeedEvent, cursor: str) -> bytes:
    """Return an event as it goes over the wire."""
    shown = {
        "kind": event.kind,
        "id": event.id,
        "at": event.at,
        "threadId": event.thread_id,
        "sessionId": event.session_id,
    }
    return f"id: {cursor}\nevent: {event.kind}\ndata: {json.dumps(shown)}\n\n".encode()


def pieces_of(page: FeedPage, cursor: str) -> list[bytes]:
    """Return a page of events, each with the cursor behind it."""
    places, pieces = read_cursor(cursor), []
    for each in page:
        places[each.key[0]] = int(each.key[1:])
        pieces.append(piece_of(each, write_cursor(places)))
    return pieces


class Events:
    """The streams of a server."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._loop: asyncio.AbstractEventLoop | None = None
        self.channels: dict[str, Channel] = {}
        self._is_closed = False

    async def respond(self, request: Request) -> Response:
        """Open a stream of what happens, since ``Last-Event-ID``."""
        if sum(len(each.watchers) for each in self.channels.values()) >= MOST_WATCHERS:
            raise Refusal(503, "too_many_watchers", "Too many streams are open.", retry_after="5")
        caller = Caller.of(request)
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        if after is not None:
            read_cursor(after)
        self._loop = asyncio.get_running_loop()
        name, is_late = await self._api.in_thread(lambda: self._project(caller))
        channel = self.channels.setdefault(name, Channel(self._reader(caller), is_late))
        watcher = Subscriber(name=name_of(request.query_params.get("as", "")))
        await channel.add(watcher, after)
        stream = self._stream(channel, watcher, request.scope["state"]["is_known"])
        return StreamingResponse(stream, media_type="text/event-stream")

    def _project(self, caller: Caller) -> tuple[str, bool]:
        with self._api.memory(caller) as memory:
            return memory.project, memory.path is None

    def _reader(self, caller: Caller) -> Callable[[str | None], Awaitable[FeedPage]]:
        def read(after: str | None) -> FeedPage:
            with self._api.memory(caller) as memory:
                if after is None:
                    return FeedPage((), memory.feed.newest())
                return memory.feed.list(after, _PAGE)

        async def ask(after: str | None) -> FeedPage:
            page: FeedPage = await self._api.in_thread(lambda: read(after))
            return page

        return ask

    async def _stream(
        self, channel: Channel, watcher: Subscriber, is_known: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        due = clock() + _BEAT_SECONDS
        try:
            while not self._is_closed:
                try:
                    piece = await asyncio.wait_for(watcher.queue.get(), _BEAT_SECONDS)
                except TimeoutError:
                    piece = b": \n\n"  # a sign of life, so that a lost connection is noticed
                if piece is None:
                    return
                if clock() >= due:
                    due = clock() + _BEAT_SECONDS
                    with suppress(SmaraError):  # a store that is busy is asked again
                        if not await is_known():
                            return  # its key was revoked, or its time is over
                name = watcher.name
                yield _NAME.sub(f"event: {name}\n".encode(), piece) if name else piece
        finally:
            channel.remove(watcher)

    def wake(self, project: str) -> None:
        """Tell those who watch a project to look; from any thread."""
        channel, loop = self.channels.get(project), self._loop
        if channel is not None and channel.watchers and loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(channel.wake)

    def close(self) -> None:
        """End every stream; from any thread."""
        self._is_closed = True
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._close_all)

    def _close_all(self) -> None:
        for each in self.channels.values():
            each.close()
