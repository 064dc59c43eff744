"""Generate secrets from the vendors' published formats, independently of the rules.

Written from public descriptions (vendor documentation, GitHub's list of supported secret
patterns) without looking at the rules they are meant to test. `VENDORS` are tokens that their
prefix identifies. `CONTEXTS` are values that only their surroundings show to be secret.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable, Iterator

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
LETTERS, ALNUM = string.ascii_letters, string.ascii_letters + string.digits
HEX, URLSAFE = DIGITS + "abcdef", ALNUM + "-_"
Maker = Callable[[random.Random], str]


def some(rng: random.Random, alphabet: str, length: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(length))


def of(pattern: str) -> Maker:
    """Make a maker: ``{h40}`` 40 hex digits, ``a`` alphanumeric, ``u`` URL-safe, ``d`` digits,
    ``l`` lower and digits, ``U`` upper and digits, ``b`` base64.
    """
    kinds = {
        "h": HEX, "a": ALNUM, "u": URLSAFE, "d": DIGITS, "l": LOWER + DIGITS, "U": UPPER + DIGITS,
        "b": ALNUM + "+/",
    }  # fmt: skip

    def make(rng: random.Random) -> str:
        out, rest = "", pattern
        while "{" in rest:
            before, _, rest = rest.partition("{")
            field, _, rest = rest.partition("}")
            out += before + some(rng, kinds[field[0]], int(field[1:]))
        return out + rest

    return make


VENDORS: dict[str, Maker] = {
    "github classic": of("ghp_{a36}"), "github oauth": of("gho_{a36}"),
    "github user": of("ghu_{a36}"), "github server": of("ghs_{a36}"),
    "github refresh": of("ghr_{a36}"), "github fine": of("github_pat_{a22}_{a59}"),
    "gitlab pat": of("glpat-{u20}"), "gitlab runner": of("glrt-{u20}"),
    "gitlab deploy": of("gldt-{u20}"), "gitlab trigger": of("glptt-{h40}"),
    "anthropic api": of("sk-ant-api03-{u93}AA"), "anthropic admin": of("sk-ant-admin01-{u93}AA"),
    "anthropic oauth": of("sk-ant-oat01-{u93}AA"), "anthropic refresh": of("sk-ant-ort01-{u93}AA"),
    "anthropic session": of("sk-ant-sid01-{u93}AA"),
    "openai project": of("sk-proj-{a20}T3BlbkFJ{a20}"),
    "openai long": of("sk-proj-{u74}T3BlbkFJ{u74}"),
    "openai service": of("sk-svcacct-{u74}T3BlbkFJ{u74}"),
    "openai classic": of("sk-{a20}T3BlbkFJ{a20}"), "aws key": of("AKIA{U16}"),
    "aws session key": of("ASIA{U16}"), "google api": of("AIza{u35}"),
    "google oauth": of("GOCSPX-{u28}"), "google refresh": of("1//0{u60}"),
    "google access": of("ya29.{u120}"), "slack bot": of("xoxb-{d12}-{d13}-{a24}"),
    "slack user": of("xoxp-{d12}-{d12}-{d13}-{h32}"), "slack app": of("xapp-1-A{U10}-{d13}-{h64}"),
    "slack webhook": of("https://hooks.slack.com/services/T{U10}/B{U10}/{a24}"),
    "stripe live": of("sk_live_{a24}"), "stripe long": of("sk_live_51{a97}"),
    "stripe restricted": of("rk_live_{a24}"), "stripe webhook": of("whsec_{a32}"),
    "twilio key": of("SK{h32}"), "sendgrid": of("SG.{u22}.{u43}"), "mailgun": of("key-{h32}"),
    "npm": of("npm_{a36}"), "pypi": of("pypi-AgEIcHlwaS5vcmc{u150}"),
    "docker": of("dckr_pat_{u27}"),
    "huggingface": of("hf_{a34}"), "replicate": of("r8_{a37}"), "groq": of("gsk_{a52}"),
    "perplexity": of("pplx-{a48}"), "xai": of("xai-{a80}"), "openrouter": of("sk-or-v1-{h64}"),
    "digitalocean": of("dop_v1_{h64}"), "digitalocean oauth": of("doo_v1_{h64}"),
    "shopify": of("shpat_{h32}"), "shopify secret": of("shpss_{h32}"), "square": of("sq0atp-{u22}"),
    "square secret": of("sq0csp-{u43}"), "linear": of("lin_api_{a40}"), "notion": of("ntn_{a46}"),
    "notion old": of("secret_{a43}"), "figma": of("figd_{u40}"), "airtable": of("pat{a14}.{h64}"),
    "atlassian": of("ATATT3xFfGF0{u180}=AAAAAAAA"), "databricks": of("dapi{h32}"),
    "planetscale": of("pscale_tkn_{u43}"), "planetscale pw": of("pscale_pw_{u43}"),
    "supabase": of("sbp_{h40}"), "vault": of("hvs.{u95}"), "terraform": of("{a14}.atlasv1.{u67}"),
    "newrelic": of("NRAK-{U27}"), "grafana": of("glsa_{a32}_{h8}"),
    "grafana cloud": of("glc_{b60}"), "sentry": of("sntryu_{h64}"),
    "postman": of("PMAK-{h24}-{h34}"), "doppler": of("dp.pt.{a43}"), "fly": of("fo1_{u43}"),
    "age": lambda r: "AGE-SECRET-KEY-1" + some(r, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "telegram": of("{d10}:AA{u33}"), "discord bot": of("MTA{a21}.{u6}.{u38}"),
    "discord webhook": of("https://discord.com/api/webhooks/{d18}/{u68}"),
    "azure storage": lambda r: "DefaultEndpointsProtocol=https;AccountName=x;AccountKey="
    + base64.b64encode(r.randbytes(64)).decode() + ";EndpointSuffix=core.windows.net",
    "jwt": lambda r: ".".join(
        [base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("="),
         base64.urlsafe_b64encode(b'{"sub":"' + some(r, DIGITS, 12).encode() + b'"}').decode()
         .rstrip("="), some(r, URLSAFE, 43)]),
    "private key": lambda r: "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(some(r, ALNUM + "+/", 64) for _ in range(6)) + "\n-----END RSA PRIVATE KEY-----",
    "rubygems": of("rubygems_{h48}"), "crates": of("cio{a32}"), "nuget": of("oy2{l43}"),
    "contentful": of("CFPAT-{u43}"), "dynatrace": of("dt0c01.{U24}.{U64}"),
    "easypost": of("EZAK{a54}"), "flutterwave": of("FLWSECK_TEST-{h32}-X"),
    "razorpay": of("rzp_live_{a14}"), "mailchimp": of("{h32}-us12"), "okta": of("SSWS 00{u40}"),
    "langsmith": of("lsv2_pt_{h32}_{h10}"), "tavily": of("tvly-{a32}"),
    "vercel blob": of("vercel_blob_rw_{a16}_{a30}"), "clerk": of("sk_live_{a40}"),
    "resend": of("re_{a8}_{a24}"), "posthog": of("phx_{a43}"), "firecrawl": of("fc-{h32}"),
    "e2b": of("e2b_{h40}"), "pinecone": of("pcsk_{a6}_{a63}"),
    "cloudflare origin": of("v1.0-{h24}-{h146}"),
    "buildkite": of("bkua_{h40}"), "circleci": of("CCIPAT_{a22}_{h40}"), "render": of("rnd_{a32}"),
    "duffel": of("duffel_live_{u43}"), "prefect": of("pnu_{l36}"), "readme": of("rdme_{l70}"),
    "scalingo": of("tk-us-{u48}"), "typeform": of("tfp_{u44}_{u14}"),
}  # fmt: skip

_SIGNS = "!@#%^&*-_+=?"
_WORDS = [
    "bluebird",
    "morning",
    "harbor",
    "copper",
    "lantern",
    "winter",
    "garden",
    "silver",
    "rocket",
    "maple",
    "thunder",
    "valley",
    "orange",
    "puzzle",
    "castle",
    "meadow",
    "crystal",
    "shadow",
    "tiger",
    "canyon",
    "velvet",
    "comet",
    "pepper",
    "falcon",
]


def _password(rng: random.Random) -> str:
    kind = rng.randrange(4)
    if kind == 0:
        return some(rng, ALNUM, rng.randint(10, 24))
    if kind == 1:
        return some(rng, ALNUM, 8) + rng.choice(_SIGNS) + some(rng, ALNUM + _SIGNS, 6)
    if kind == 2:
        return rng.choice(_WORDS) + rng.choice(_WORDS) + some(rng, DIGITS, 2)
    return rng.choice(_WORDS) + rng.choice(_WORDS)


CONTEXTS: dict[str, tuple[str, Maker]] = {
    "env": ("DB_PASSWORD={}\n", _password),
    "env export": ('export POSTGRES_PASSWORD="{}"\n', _password),
    "env secret": ("JWT_SECRET={}\n", of("{a32}")),
    "env key": ("MAPS_API_KEY={}\n", of("{a32}")),
    "yaml": ("database:\n  user: app\n  password: {}\n", _password),
    "json": ('{{"user": "app", "password": "{}"}}', _password),
    "json key": ('{{"apiKey": "{}"}}', of("{a32}")),
    "toml": ('[db]\npassword = "{}"\n', _password),
    "python": ('DATABASE_PASSWORD = "{}"\n', _password),
    "js": ('const clientSecret = "{}";\n', of("{a40}")),
    "url": ("postgres://app:{}@db.internal:5432/shop", lambda r: some(r, ALNUM, 14)),
    "redis url": ("redis://:{}@cache:6379/0", lambda r: some(r, ALNUM, 20)),
    "bearer": ("Authorization: Bearer {}\n", of("{u40}")),
    "basic": ("Authorization: Basic {}\n", lambda r: base64.b64encode(
        f"app:{some(r, ALNUM, 16)}".encode()).decode()),
    "header": ("X-Api-Key: {}\n", of("{a32}")),
    "flag": ("tool login --password {} --host h\n", _password),
    "token flag": ("tool --token={} run\n", of("{h40}")),
    "mysql": ("mysql -u root -p{} shop\n", lambda r: some(r, ALNUM, 14)),
    "curl": ("curl -u app:{} https://h/x\n", lambda r: some(r, ALNUM, 16)),
    "npmrc": ("//registry.npmjs.org/:_authToken={}\n", of("{h36}")),
    "netrc": ("machine h login app password {}\n", _password),
    "xml": ("<password>{}</password>", _password),
    "properties": ("spring.datasource.password={}\n", _password),
    "aws secret": ("aws_secret_access_key = {}\n", of("{b40}")),
}  # fmt: skip
CARRIERS = ("{}", "token is {} now", 'x = "{}"', "- {}\n", "$ run --with {}\nok", '{{"k": "{}"}}')


def vendor_samples(seed: int, each: int = 6) -> Iterator[tuple[str, str, str]]:
    """Yield kind, text and the secret in it."""
    rng = random.Random(seed)
    for kind, make in VENDORS.items():
        for carrier in rng.sample(CARRIERS, each):
            secret = make(rng)
            # Of an address only its last part is secret, of a connection string only the key.
            core = secret.partition("AccountKey=")[2].partition(";")[0] or secret
            yield kind, carrier.format(secret), core.rsplit("/", 1)[-1] if "://" in core else core


def context_samples(seed: int, each: int = 20) -> Iterator[tuple[str, str, str]]:
    """Yield kind, text and the secret in it."""
    rng = random.Random(seed)
    for kind, (template, make) in CONTEXTS.items():
        for _ in range(each):
            secret = make(rng)
            yield kind, template.format(secret), secret
