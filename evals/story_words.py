"""The sentences of the generated stories: what is planted, and the filler around it.

Written before any figure was seen. An answer is never in its question. Since a date or a day can
stand anywhere, ``about`` is what must stand beside the answer for it to count.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Line:
    """One message: words, or the call of a tool."""

    role: str
    text: str = ""
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact with the exchanges that tell it; several where it is told in different sessions."""

    kind: str
    query: str
    answer: str
    parts: tuple[list[Line], ...]
    about: str = ""


Plant = Callable[[random.Random], Planted]


def user(text: str) -> Line:
    return Line("user", text)


def agent(text: str) -> Line:
    return Line("assistant", text)


def call(tool: str, **arguments: Any) -> Line:
    return Line("assistant", tool=tool, arguments=arguments)


def result(text: str, is_error: bool = False) -> Line:
    return Line("tool", text, is_error=is_error)


# planted in coding sessions


def _request(rng: random.Random) -> Planted:
    flag = rng.choice(
        ["--dry-run", "--since", "--no-color", "--max-depth", "--strict", "--profile"]
    )
    command = rng.choice(["sync", "export", "deploy", "lint", "backup"])
    asked = user(
        f"Please add a `{flag}` option to the {command} command, and mention it in its help text."
    )
    return Planted(
        "request",
        f"which option should be added to the {command} command",
        flag,
        parts=([asked, agent("I will do that after the current change.")],),
        about=command,
    )


def _preference(rng: random.Random) -> Planted:
    tool, other, area = rng.choice(
        [
            ("pnpm", "npm", "installing packages"),
            ("ruff", "flake8", "linting"),
            ("httpx", "requests", "HTTP calls"),
            ("pathlib", "os.path", "file handling"),
            ("structlog", "logging", "log output"),
        ]
    )
    said = user(f"For {area} I prefer {tool} to {other}. Always use it in this repository.")
    return Planted(
        "preference",
        f"what does the user prefer for {area}",
        tool,
        parts=([said, agent("Noted, I will keep to that.")],),
        about=area,
    )


def _decision(rng: random.Random) -> Planted:
    choice, other, area = rng.choice(
        [
            ("Redis", "Memcached", "session cache"),
            ("Kafka", "RabbitMQ", "event pipeline"),
            ("Argon2", "bcrypt", "password hashing"),
            ("Parquet", "CSV", "nightly dump"),
            ("gRPC", "REST", "internal API"),
        ]
    )
    lines = [
        user(f"What are our choices for the {area}?"),
        agent(
            f"Either {choice} or {other}. The first is faster, the second is what the team knows."
        ),
        user(f"Then let's go with {choice} for the {area}."),
    ]
    return Planted(
        "decision", f"what did we decide to use for the {area}", choice, parts=(lines,), about=area
    )


def _path(rng: random.Random) -> Planted:
    thing, file = rng.choice(
        [
            ("rate limiter", "throttle"),
            ("retry logic", "attempts"),
            ("token refresh", "renewal"),
            ("invoice rounding", "money"),
            ("feature flags", "toggles"),
        ]
    )
    path = f"src/{rng.choice(['billing', 'gateway', 'platform', 'ledger'])}/{file}.py"
    lines = [
        user(f"Where should the {thing} go?"),
        agent(f"The {thing} fits best beside its callers; I am putting it there."),
        call(
            "Write", file_path=f"/home/dev/app/{path}", content=f'"""The {thing}."""\n\nLIMIT = 5\n'
        ),
        result(f"File created successfully at: /home/dev/app/{path}"),
        agent(f"The {thing} now lives in `{path}`."),
    ]
    return Planted("path", f"which file holds the {thing}", path, parts=(lines,))


def _function(rng: random.Random) -> Planted:
    name, does = rng.choice(
        [
            ("merge_overlapping_spans", "joins time ranges that touch"),
            ("normalize_phone", "brings telephone numbers into one form"),
            ("parse_retry_after", "reads the header that says how long to wait"),
            ("split_batches", "cuts a list into chunks"),
            ("strip_tracking_params", "removes tracking from a link"),
        ]
    )
    path = f"/home/dev/app/src/common/{rng.choice(['helpers', 'tools', 'misc'])}.py"
    code = f'def {name}(value):\n    """This {does}."""\n    return value\n'
    lines = [
        user(f"We need a function that {does}."),
        call("Edit", file_path=path, old_string="# helpers\n", new_string=f"# helpers\n\n{code}"),
        result(f"The file {path} has been updated."),
        agent(f"`{name}` {does}; it is in the shared helpers and has a docstring."),
    ]
    return Planted("function", f"what is the function called that {does}", name, parts=(lines,))


def _version(rng: random.Random) -> Planted:
    library = rng.choice(["SQLAlchemy", "Django", "Pillow", "numpy", "Celery"])
    version = f"{rng.randint(1, 6)}.{rng.randint(11, 29)}.{rng.randint(1, 9)}"
    said = user(
        f"We are pinned to {library} {version} because the next one breaks our plugins. Do not "
        "upgrade it."
    )
    return Planted(
        "version",
        f"which version of {library} are we pinned to",
        version,
        parts=([said, agent("Understood, it stays.")],),
        about=library,
    )


def _error_fix(rng: random.Random) -> Planted:
    error, command, cure = rng.choice(
        [
            ("ConnectionResetError", "pytest tests/sockets", "SO_KEEPALIVE"),
            ("UnicodeDecodeError", "python tools/load.py", "utf-8-sig"),
            ("OperationalError: database is locked", "python manage.py migrate", "busy_timeout"),
            ("SSLCertVerificationError", "python -m app.fetch", "REQUESTS_CA_BUNDLE"),
            ("RecursionError", "python -m app.tree", "iter_nodes"),
        ]
    )
    lines = [
        user(f"`{command}` is failing, can you see why?"),
        call("Bash", command=command),
        result(
            f'Traceback (most recent call last):\n  File "app.py", line 88, in run\n{error}\n',
            is_error=True,
        ),
        agent("Let me change how this is set up."),
        call(
            "Edit",
            file_path="/home/dev/app/app.py",
            old_string="run()",
            new_string=f"run(option='{cure}')",
        ),
        result("The file /home/dev/app/app.py has been updated."),
        call("Bash", command=command),
        result("ok, done in 2.1s"),
        agent(
            f"The {error.split(':')[0]} is fixed: `{cure}` was missing, and with it the command "
            "passes."
        ),
    ]
    return Planted(
        "error and fix",
        f"how was the {error.split(':')[0]} fixed",
        cure,
        parts=(lines,),
        about=error.split(":")[0],
    )


def _date(rng: random.Random) -> Planted:
    event = rng.choice(
        ["code freeze", "security audit", "customer demo", "data center move", "license renewal"]
    )
    date = f"{rng.randint(10, 28)} {rng.choice(['February', 'March', 'April', 'May'])}"
    said = user(f"By the way, the {event} is on {date}, so plan around that.")
    return Planted(
        "date",
        f"when is the {event}",
        date,
        parts=([said, agent("I will keep that in mind.")],),
        about=event,
    )


def _changed(rng: random.Random) -> Planted:
    service = rng.choice(["staging", "the metrics server", "the preview build", "the mock API"])
    old, new = (str(port) for port in rng.sample(range(8100, 9900), 2))
    first = [
        user(f"{service.capitalize()} listens on port {old}."),
        agent("Good, I will use that."),
    ]
    second = [
        user(f"{service.capitalize()} has moved, it listens on port {new} now."),
        agent("Changed."),
    ]
    return Planted(
        "changed",
        f"on which port does {service} listen now",
        new,
        parts=(first, second),
        about=service,
    )


def _finding(rng: random.Random) -> Planted:
    where = rng.choice(
        [
            "image resizing",
            "the permission check",
            "JSON encoding",
            "the search index",
            "template rendering",
        ]
    )
    share = f"{rng.randint(31, 89)} %"
    lines = [
        user("Why is the start page so slow?"),
        call("Bash", command="python -m cProfile -s cumtime app.py | head -40"),
        result(
            "         1204 function calls in 3.112 seconds\n   ncalls  tottime  percall  cumtime\n"
        ),
        agent(f"I profiled it: {where} takes {share} of the time, everything else is small."),
    ]
    return Planted(
        "finding", f"what share of the time does {where} take", share, parts=(lines,), about=where
    )


# planted in a person's chats


def _reminder(rng: random.Random) -> Planted:
    what, thing = rng.choice(
        [
            ("call", "the plumber Okafor"),
            ("renew", "my library card"),
            ("send", "the signed lease"),
            ("water", "Ingrid's orchids"),
            ("book", "the eye examination"),
        ]
    )
    said = user(f"Please remind me to {what} {thing} before the weekend.")
    answer = thing.split()[-1]
    return Planted(
        "request",
        f"what did I ask you to remind me to {what}",
        answer,
        parts=([said, agent("I will remind you.")],),
        about=what,
    )


def _taste(rng: random.Random) -> Planted:
    thing, dish = rng.choice(
        [
            ("coriander", "curries"),
            ("olives", "salads"),
            ("raisins", "cakes"),
            ("blue cheese", "sauces"),
            ("aniseed", "sweets"),
        ]
    )
    said = user(f"I can't stand {thing}, so leave it out when you suggest {dish}.")
    return Planted(
        "preference",
        f"what should be left out of {dish} for me",
        thing,
        parts=([said, agent("Of course.")],),
        about=dish,
    )


def _trip(rng: random.Random) -> Planted:
    place, other = rng.sample(["Ljubljana", "Porto", "Tallinn", "Ghent", "Trieste", "Bergen"], 2)
    lines = [
        user("We can't make up our minds about the anniversary trip."),
        agent(f"Both {place} and {other} are lovely then. {place} is closer by train."),
        user(f"OK, we decided: the anniversary trip goes to {place}."),
    ]
    return Planted(
        "decision", "where does the anniversary trip go", place, parts=(lines,), about="anniversary"
    )


def _relative(rng: random.Random) -> Planted:
    name = rng.choice(["Oluwaseun", "Marguerite", "Thaddeus", "Yasmin", "Bartholomew"])
    who, does = rng.choice(
        [
            ("sister", "veterinarian"),
            ("cousin", "glass blower"),
            ("neighbor", "tram driver"),
            ("uncle", "beekeeper"),
        ]
    )
    said = user(f"My {who} {name} works as a {does} and is coming over on Sunday.")
    return Planted(
        "person",
        f"what is the name of my {who} the {does}",
        name,
        parts=([said, agent("How nice!")],),
        about=does,
    )


def _appointment(rng: random.Random) -> Planted:
    event = rng.choice(
        [
            "dentist appointment",
            "driving test",
            "piano recital",
            "passport interview",
            "vaccination",
        ]
    )
    date = f"{rng.randint(10, 28)} {rng.choice(['February', 'March', 'April', 'May'])}"
    said = user(f"My {event} is on {date} at nine in the morning.")
    return Planted(
        "date",
        f"when is my {event}",
        date,
        parts=([said, agent("Good luck with it!")],),
        about=event,
    )


def _amount(rng: random.Random) -> Planted:
    what = rng.choice(["kitchen renovation", "new bicycle", "language course", "garden shed"])
    amount = f"{rng.randint(11, 98) * 50 + 7} euros"
    said = user(f"I have set aside {amount} for the {what}, not a cent more.")
    return Planted(
        "number",
        f"how much money do I have for the {what}",
        amount,
        parts=([said, agent("A clear limit helps.")],),
        about=what,
    )


def _device(rng: random.Random) -> Planted:
    device = rng.choice(["router", "camera", "e-reader", "thermostat"])
    version = f"{rng.randint(2, 9)}.{rng.randint(11, 40)}.{rng.randint(1, 9)}"
    said = user(f"My {device} runs firmware {version}, and since then the display flickers.")
    return Planted(
        "version",
        f"which firmware is on my {device}",
        version,
        parts=([said, agent("That sounds like a bug.")],),
        about=device,
    )


def _repair(rng: random.Random) -> Planted:
    machine, code, cure = rng.choice(
        [
            ("washing machine", "E21", "drain filter"),
            ("dishwasher", "F7", "float switch"),
            ("boiler", "A38", "bleed valve"),
            ("printer", "B200", "purge unit"),
        ]
    )
    lines = [
        user(f"The {machine} stops with error {code}, what can I do?"),
        agent(
            "There are a few common causes: the supply, a blockage, or a worn part. Start with "
            "what you can reach."
        ),
        user(f"It works again! Cleaning the {cure} solved it."),
        agent("Great news."),
    ]
    return Planted(
        "error and fix", f"what solved error {code} of the {machine}", cure, parts=(lines,)
    )


def _training(rng: random.Random) -> Planted:
    what = rng.choice(["choir practice", "yoga class", "Spanish class", "chess club"])
    old, new = rng.sample(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"], 2)
    first = [user(f"My {what} is every {old} evening."), agent("A good fixed point in the week.")]
    second = [
        user(f"My {what} has moved from {old} to {new} evening."),
        agent("Then your week changes a bit."),
    ]
    return Planted(
        "changed", f"on which evening is my {what} now", new, parts=(first, second), about=what
    )


def _advice(rng: random.Random) -> Planted:
    title, kind = rng.choice(
        [
            ("The Lantern Makers", "historical novel"),
            ("Salt and Meridian", "travel book"),
            ("Nine Quiet Rivers", "poetry collection"),
            ("The Umbrella Thief", "crime novel"),
        ]
    )
    lines = [
        user(f"Can you recommend a {kind}?"),
        agent(
            f'For a {kind} I would recommend "{title}": it is short, warm and easy to put down '
            "and take up again."
        ),
        user("Thanks, I'll look for it."),
    ]
    return Planted("answer", f"which {kind} did you recommend", title, parts=(lines,), about=kind)


PLANTS: dict[str, list[Plant]] = {
    "coding": [
        _request,
        _preference,
        _decision,
        _path,
        _function,
        _version,
        _error_fix,
        _date,
        _changed,
        _finding,
    ],
    "general": [
        _reminder,
        _taste,
        _trip,
        _relative,
        _appointment,
        _amount,
        _device,
        _repair,
        _training,
        _advice,
    ],
}


# filler

_MODULES = (
    "accounts",
    "reports",
    "mailer",
    "catalog",
    "uploads",
    "sessions",
    "audit",
    "webhooks",
    "pricing",
    "locale",
)
_VERBS = ("load", "build", "check", "render", "store", "update", "collect")
_NOUNS = ("row", "page", "entry", "batch", "item", "record", "view")
_SUBJECTS = (
    "growing tomatoes on a balcony",
    "learning to sketch",
    "sleeping better",
    "keeping a sourdough starter",
    "planning a small birthday party",
    "tidying a crowded wardrobe",
    "running in winter",
    "choosing houseplants",
    "writing a friendly letter of complaint",
    "making a week's lunches ahead",
)
_TIPS = (
    "Start small and keep a note of what worked.",
    "Give it a fixed place in the week, so that it becomes a habit.",
    "Most people do too much in the beginning; less is fine.",
    "Buy only what you need for the first try.",
    "Ask somebody who has done it, they like to tell.",
    "Morning light makes a larger difference than one would think.",
    "If it goes wrong, change one thing at a time.",
    "Take a photo now and then; progress is hard to see from day to day.",
    "Leave some slack for the days on which nothing works.",
    "A cheap timer is worth more than an app.",
)


def filler(flavor: str, rng: random.Random) -> list[Line]:
    """One exchange in which nothing is planted."""
    return _coding_filler(rng) if flavor == "coding" else _chat_filler(rng)


def _name(rng: random.Random) -> str:
    return f"{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}"


def _coding_filler(rng: random.Random) -> list[Line]:
    module = rng.choice(_MODULES)
    path = f"/home/dev/app/src/{module}/{rng.choice(_NOUNS)}s.py"
    code = "\n".join(
        f"def {_name(rng)}(value):\n    return {_name(rng)}(value)\n"
        for _ in range(rng.randint(3, 20))
    )
    look = [call("Read", file_path=path), result(code)]
    test = [
        call("Bash", command=f"pytest tests/{module} -q"),
        result(f"{rng.randint(3, 60)} passed in 1.{rng.randint(1, 9)}s"),
    ]
    kind = rng.randrange(6)
    if kind == 0:
        return [
            user(f"Can you look at the {module} module?"),
            *look,
            agent(f"It is straightforward: {_name(rng)} does the work."),
        ]
    if kind == 1:
        return [user("Run the tests, please."), *test, agent("All pass.")]
    if kind == 2:
        edit = call("Edit", file_path=path, old_string=_name(rng), new_string=_name(rng))
        return [
            user(f"Rename the helper in {module}."),
            *look,
            edit,
            result(f"The file {path} has been updated."),
            *test,
        ]
    if kind == 3:
        found = "\n".join(
            f"src/{rng.choice(_MODULES)}/{_name(rng)}.py:{rng.randint(1, 400)}" for _ in range(12)
        )
        return [
            user(f"Who calls {_name(rng)}?"),
            call("Grep", pattern=_name(rng)),
            result(found),
            agent("A dozen places."),
        ]
    if kind == 4:
        return [
            user(rng.choice(["ok", "thanks", "go on", "looks good"])),
            agent("Continuing with the next step."),
            *look,
        ]
    return [
        user(f"Is {module} covered by tests? The library versions and ports there confuse me."),
        *test,
        agent(
            f"Yes, {module} is covered; the configuration decides which port and version it uses."
        ),
    ]


def _chat_filler(rng: random.Random) -> list[Line]:
    subject = rng.choice(_SUBJECTS)
    tips = " ".join(rng.sample(_TIPS, rng.randint(3, 7)))
    kind = rng.randrange(4)
    if kind == 0:
        return [user(f"Any advice on {subject}?"), agent(f"Happy to help with {subject}. {tips}")]
    if kind == 1:
        numbered = "\n".join(f"{at}. {tip}" for at, tip in enumerate(rng.sample(_TIPS, 5), 1))
        return [
            user(f"Give me a list about {subject}."),
            agent(f"Here is a list:\n\n{numbered}"),
            user("Thank you!"),
        ]
    if kind == 2:
        mood = rng.choice(["long", "quiet", "odd", "busy"])
        return [
            user(f"It was a {mood} day today."),
            agent(f"Tell me about it, or let us talk of {subject}. {tips}"),
        ]
    return [
        user(f"I am still thinking about {subject}."),
        agent(f"There is no hurry. {tips}"),
        user("Maybe next month."),
    ]
