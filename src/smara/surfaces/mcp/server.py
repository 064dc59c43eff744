"""Build the MCP server from tools, resources and prompts.

Nothing here depends on a transport.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from smara import __version__
from smara.errors import NotFoundError, SmaraError, UsageError
from smara.memory import Memory
from smara.shapes import encodable
from smara.surfaces.http.store import Store
from smara.surfaces.mcp import resources
from smara.tools import ToolContext, description, instructions, schemas
from smara.tools.catalogue import Profile, tools_of
from smara.tools.schemas import Form

T = TypeVar("T")
Context = ServerRequestContext[Any, Any]
_HOUR_MS = 3_600_000
_MOST_AT_ONCE = 8
_HEADERS = {
    "session_id": "smara-session", "thread_id": "smara-thread", "resource_id": "smara-resource",
    "actor": "smara-actor",
}  # fmt: skip


def tool_list(form: Form = "flat", profile: Profile = "default") -> list[types.Tool]:
    """Return the tools in a fixed order, so prompts stay cached."""
    found = schemas(form, profile)
    return [
        types.Tool(
            name=name,
            title=tool.title,
            description=description(name),
            input_schema=found[name],
            annotations=types.ToolAnnotations(
                read_only_hint=tool.is_read_only,
                destructive_hint=False,
                idempotent_hint=tool.is_read_only,
                open_world_hint=False,
            ),
        )
        for name, tool in tools_of(profile).items()
    ]


class Door:
    """Answers the requests of the protocol from one store."""

    def __init__(self, store: Store, context: ToolContext, profile: Profile = "default") -> None:
        self._store = store
        self._context = context
        self._profile: Profile = profile
        self._names = tools_of(profile)
        self._limiter = anyio.CapacityLimiter(_MOST_AT_ONCE)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in self._names:
            raise MCPError(
                types.INVALID_PARAMS,
                f"Unknown tool {params.name[:60]!r}. The tools are {', '.join(self._names)}.",
            )
        outcome = await anyio.to_thread.run_sync(
            self._store.call,
            params.name,
            params.arguments,
            context_of(ctx.request).over(self._context),
            self._profile,
            limiter=self._limiter,
        )
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=outcome.text)],
            structured_content=outcome.structured,
            is_error=outcome.is_error,
        )

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        caller = context_of(ctx.request).over(self._context)
        text = await self._ask(lambda memory: resources.read(memory, uri, caller))
        contents = types.TextResourceContents(
            uri=uri, mime_type=resources.MARKDOWN, text=encodable(text)
        )
        return types.ReadResourceResult(contents=[contents])

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        found = resources.PROMPTS.get(params.name)
        if found is None:
            raise MCPError(
                types.INVALID_PARAMS,
                f"Unknown prompt {params.name[:60]!r}. "
                f"The prompts are {', '.join(resources.PROMPTS)}.",
            )
        caller = context_of(ctx.request).over(self._context)
        text = await self._ask(lambda memory: found.build(memory, params.arguments or {}, caller))
        return types.GetPromptResult(
            description=found.says,
            messages=[
                types.PromptMessage(
                    role="user", content=types.TextContent(type="text", text=encodable(text))
                )
            ],
        )

    async def _ask(self, work: Callable[[Memory], T]) -> T:
        """Do some reading in a worker thread; what goes wrong becomes an error of the protocol."""

        def borrow() -> T:
            with self._store.memory() as memory:
                return work(memory)

        try:
            return await anyio.to_thread.run_sync(borrow, limiter=self._limiter)
        except SmaraError as error:
            is_theirs = isinstance(error, UsageError)
            data = {"code": error.code, "retryable": error.is_retryable}
            is_missing = isinstance(error, NotFoundError)
            raise MCPError(
                types.INVALID_PARAMS if is_theirs else types.INTERNAL_ERROR,
                encodable(error.facts.get("brief", error.message) if is_missing else error.message),
                data,
            ) from None


def context_of(request: Any) -> ToolContext:
    """Return an HTTP request's caller from its headers.

    An anonymous one for other transports.
    """
    headers: Mapping[str, str] = getattr(request, "headers", None) or {}
    found: dict[str, Any] = {
        field: headers.get(name, "").strip() or None for field, name in _HEADERS.items()
    }
    return ToolContext(**found)


def _always(result: T) -> Callable[[Context, Any], Awaitable[T]]:
    async def answer(ctx: Context, params: Any) -> T:
        return result

    return answer


def build_server(
    store: Store, context: ToolContext, form: Form = "flat", profile: Profile = "default"
) -> Server[Any]:
    """The server over one store."""
    door = Door(store, context, profile)
    standing = [
        types.Resource(
            uri=uri,
            name=uri.rpartition("://")[2].replace("/", "-"),
            title=title,
            description=says,
            mime_type=resources.MARKDOWN,
        )
        for uri, (title, says) in resources.STANDING.items()
    ]
    templates = [
        types.ResourceTemplate(
            uri_template=f"smara://{kind}/{{id}}{{?page}}",
            name=kind,
            title=title,
            description=says,
            mime_type=resources.MARKDOWN,
        )
        for kind, (title, says) in resources.TEMPLATES.items()
    ]
    prompts = [
        types.Prompt(
            name=each.name,
            title=each.title,
            description=each.says,
            arguments=[
                types.PromptArgument(name=name, description=says, required=name in each.required)
                for name, says in each.arguments.items()
            ],
        )
        for each in resources.PROMPTS.values()
    ]
    always = CacheHint(ttl_ms=_HOUR_MS, scope="public")
    server: Server[Any] = Server(
        "smara",
        version=__version__,
        title="Smara",
        instructions=instructions(profile),
        cache_hints={
            "tools/list": always,
            "prompts/list": always,
            "resources/list": always,
            "resources/templates/list": always,
            "server/discover": always,
        },
        on_list_tools=_always(types.ListToolsResult(tools=tool_list(form, profile))),
        on_call_tool=door.call_tool,
        on_list_resources=_always(types.ListResourcesResult(resources=standing)),
        on_list_resource_templates=_always(
            types.ListResourceTemplatesResult(resource_templates=templates)
        ),
        on_read_resource=door.read_resource,
        on_list_prompts=_always(types.ListPromptsResult(prompts=prompts)),
        on_get_prompt=door.get_prompt,
        get_tool_input_schema=schemas(form, profile).get,
    )
    server.middleware.clear()  # no spans: they are not collected here, and every call would pay
    return server
