"""Serve the panel: pages for people, drawn on the server.

Every page has an address that restores it, and a twin in JSON (``/ui/memories.json``) with the data
it shows. A form names the method of a room that it calls, and the version that the person saw: it
passes the same table of routes and the same checks as any program's request.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import quote, urlencode

from babel.dates import format_date, format_timedelta
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from babel.support import Translations
from jinja2 import (
    Environment,
    PackageLoader,
    StrictUndefined,
    pass_context,
    select_autoescape,
)
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from smara import __version__
from smara.core.clock import SystemClock
from smara.core.dates import local_time, zone_of
from smara.core.startup.regex import re, regex
from smara.errors import SmaraError
from smara.shapes import encodable
from smara.surfaces.http.address import is_loopback
from smara.surfaces.http.api import (
    Api,
    Call,
    Caller,
    check_required,
    check_right,
    from_query,
    unknown,
)
from smara.surfaces.http.problem import Refusal
from smara.surfaces.http.routes import ROUTE_OF
from smara.surfaces.panel.page import PageSpec
from smara.surfaces.panel.pages import PAGES
from smara.surfaces.panel.render import breaks, changes, diff, numbered, shown
from smara.surfaces.panel.setup import ACTS
from smara.texts import code_word, evidence_place

LANGUAGES = ("en", "fr")
COOKIE = "smara_language"
_STATIC: Mapping[str, str] = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
}
_STATIC_NAME = regex(r"(?:vendor/)?[\w-]+(?:\.[\w-]+)+", re.ASCII)
_YEAR_SECONDS = 31_536_000


class Panel:
    """The pages of one server."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._clock = SystemClock()

    @property
    def routes(self) -> list[Route]:
        """The addresses of the panel."""
        found = [
            Route("/ui/static/{name:path}", self._static),
            Route("/ui/act", self._act, methods=["POST"]),
            Route("/ui/language", self._language, methods=["POST"]),
            Route("/ui/", self._home),
        ]
        for spec in PAGES:
            path = f"/ui{spec.path}".rstrip("/")
            found += [
                Route(f"{path}.json" if spec.path != "/" else "/ui.json", self._twin(spec)),
                Route(path, self._page(spec)),
            ]
        return found

    def _page(self, spec: PageSpec) -> Any:
        async def respond(request: Request) -> Response:
            language = language_of(request)
            try:
                facts = await self._read(spec, request)
                status, template = 200, spec.template
            except SmaraError as error:
                facts, status, template = _trouble(error), 404, "trouble.html"
            return self._draw(request, language, template, spec=spec, http_status=status, **facts)

        return respond

    def _twin(self, spec: PageSpec) -> Any:
        async def respond(request: Request) -> Response:
            return JSONResponse(encodable(await self._read(spec, request, whole="1")))

        return respond

    async def _read(self, spec: PageSpec, request: Request, **more: str) -> dict[str, Any]:
        caller = Caller.of(request)
        given = request.query_params
        # A list of boxes that were ticked comes as one name with several values.
        query = {name: ",".join(given.getlist(name)) for name in given}
        query |= more | request.path_params

        def read() -> dict[str, Any]:
            with self._api.memory(caller) as memory:
                # Before anything else: what happens while the page is read is told to it later.
                cursor = memory.feed.newest()
                return {"project": memory.project, "cursor": cursor, **spec.read(memory, query)}

        facts: dict[str, Any] = await self._api.in_thread(read)
        return facts

    def _draw(
        self, request: Request, language: str, template: str, http_status: int = 200, **facts: Any
    ) -> Response:
        context = {
            "language": language,
            "pages": [page for page in PAGES if page.key],
            "here": request.url.path,
            "query": dict(request.query_params),
            "version": __version__,
            "now": self._clock.now_ms(),
            "is_peek": "hx-request" in request.headers and request.query_params.get("peek") == "1",
            **facts,
        }
        text = environment(language).get_template(template).render(context)
        return HTMLResponse(text, http_status, {"content-language": language, "vary": "hx-request"})

    async def _act(self, request: Request) -> Response:
        """Call a room's method with the fields of a form, and go back."""
        fields: dict[str, list[str]] = {}
        for name, value in (await request.form()).multi_items():
            fields.setdefault(name, []).append(str(value))
        form = {name: values[-1] for name, values in fields.items()}
        wish = form.pop("call", "")
        route = ROUTE_OF.get(wish)
        back, match = form.pop("back", "/ui"), form.pop("etag", "") or None
        if wish in ACTS:
            await self._act_here(request, wish, form)
            return _redirect(back)
        if route is None or not route.writes:
            raise Refusal(400, "unknown_act", "This form names nothing that can be changed.")
        caller = Caller.of(request)
        check_right(route, caller)
        named = route.signature.parameters
        if strange := set(form) - set(named):
            raise unknown(min(strange), named)
        # A field that was left empty was not given, unless it must be.
        given = {
            name: from_query(named[name].hint, fields[name], name)
            for name in form
            if form[name] or named[name].is_required
        }
        check_required(named, given)
        call = Call(route, caller, given, cursor=None, match=match)
        answered = await self._api.in_thread(partial(self._api.answer, call))
        if answered.status == 409:
            facts = {"conflict": answered.body, "form": form, "call": route.call, "back": back}
            facts |= {"spec": None, "project": caller.project or ""}
            return self._draw(
                request, language_of(request), "conflict.html", http_status=409, **facts
            )
        return _redirect(back.replace("{made}", quote(answered.made[1] or "")))

    async def _act_here(self, request: Request, wish: str, form: Mapping[str, str]) -> None:
        """Do what concerns this machine, for a person who sits at it."""
        caller, peer = Caller.of(request), request.client
        who = caller.principal
        if not (who.is_person and who.may_write and who.projects is None):
            raise Refusal(403, "not_a_person", "Only a person may do this, not an agent's key.")
        if peer is None or not is_loopback(peer.host):
            raise Refusal(403, "not_here", "This is done at the machine of the server alone.")

        def act() -> None:
            with self._api.memory(caller) as memory:
                ACTS[wish](memory, form)
            self._api.reload()  # settings are read when a memory is opened
            with self._api.memory(caller) as memory:
                self._api.written(memory)

        await self._api.in_thread(act)

    async def _language(self, request: Request) -> Response:
        """Remember the language that a person chose."""
        form = await request.form()
        chosen, back = str(form.get("language", "en")), str(form.get("back", "/ui"))
        response = RedirectResponse(back if back.startswith("/ui") else "/ui", status_code=303)
        if chosen in LANGUAGES:
            response.set_cookie(COOKIE, chosen, max_age=_YEAR_SECONDS, samesite="strict")
        return response

    async def _home(self, request: Request) -> Response:
        return RedirectResponse("/ui", status_code=308)

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        kind = _STATIC.get(name.rpartition(".")[2])
        if kind is None or not _STATIC_NAME.fullmatch(name) or not _file(name).is_file():
            raise Refusal(404, "no_file", "There is no such file.")
        age = f"max-age={_YEAR_SECONDS}, immutable" if request.url.query else "no-cache"
        return Response(
            _file(name).read_bytes(), headers={"content-type": kind, "cache-control": age}
        )


def _redirect(back: str) -> Response:
    """Lead back to a page of the panel, and nowhere else."""
    is_here = back.startswith("/ui") and not back.startswith("//")
    return RedirectResponse(back if is_here else "/ui", status_code=303)


def panel_routes(api: Api) -> list[Route]:
    """Return the addresses of the panel over an API."""
    return Panel(api).routes


def language_of(request: Request) -> str:
    """Return the language of a request: address, cookie, browser."""
    wished = [
        request.query_params.get("lang", ""),
        request.cookies.get(COOKIE, ""),
        *(
            each.partition(";")[0].strip()[:2]
            for each in request.headers.get("accept-language", "").split(",")
        ),
    ]
    return next((each for each in wished if each in LANGUAGES), "en")


def _trouble(error: SmaraError) -> dict[str, Any]:
    return {"code": error.code, "text": str(error), "project": ""}


@cache
def environment(language: str) -> Environment:
    """Return the templates, speaking a language."""
    env = Environment(
        loader=PackageLoader("smara.surfaces.panel"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.install_gettext_translations(catalog(language), newstyle=True)  # type: ignore[attr-defined]  # added by the extension
    plural: Any = env.globals["ngettext"]
    number = partial(format_decimal, locale=language)

    @pass_context
    def ngettext(context: Any, one: str, many: str, count: int) -> Any:
        return plural(context, one, many, count, num=number(count))  # "2,127 messages"

    env.globals["ngettext"] = ngettext
    env.filters.update(
        ago=partial(ago, language=language),
        number=number,
        breaks=breaks,
        shown=shown,
        changes=changes,
        place=evidence_place,
        freshness=code_word,
        iso=iso,
        day=partial(day, language=language),
    )
    env.globals.update(static=static, address=address, diff=diff, numbered=numbered)
    return env


@cache
def catalog(language: str) -> Translations:
    """Return the texts of a language; English speaks for itself."""
    if language == "en":
        return Translations()
    compiled = io.BytesIO()
    place = files("smara.surfaces.panel").joinpath("locale", f"{language}.po")
    with place.open("rb") as opened:
        write_mo(compiled, read_po(opened, locale=language))
    compiled.seek(0)
    return Translations(compiled)


def ago(milliseconds: int | None, language: str, now: int) -> Markup:
    """Return a time as people say it, with the exact one."""
    if milliseconds is None:
        return Markup("")
    past = format_timedelta((milliseconds - now) // 1000, add_direction=True, locale=language)
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(iso(milliseconds), past)


def day(milliseconds: int, language: str) -> str:
    """Return the day of a time as people write it."""
    when = local_time(zone_of("UTC"), milliseconds)
    return str(format_date(when.date(), format="full", locale=language))


def iso(milliseconds: int) -> str:
    """Return a time in UTC."""
    return f"{local_time(zone_of('UTC'), milliseconds):%Y-%m-%d %H:%M}Z"


def _file(name: str) -> Traversable:
    return files("smara.surfaces.panel").joinpath("static", *name.split("/"))


@cache
def static(name: str) -> str:
    """Return the address of a file, which changes with its content."""
    data = _file(name).read_bytes()
    return f"/ui/static/{name}?{hashlib.sha256(data).hexdigest()[:12]}"


def address(path: str, query: Mapping[str, str], **changes: Any) -> str:
    """Return an address with some of its values changed."""
    values = {**query, **{name: str(value) for name, value in changes.items()}}
    given = {name: value for name, value in values.items() if value not in ("", "None", "0")}
    return f"{path}?{urlencode(given)}" if given else path
