"""Secrets that are known by the name they are given: `password = …`, `"api_key": …`, `--token …`.

Any name can be assigned anything, so these rules only find a value; `shape`
then decides whether the value looks like a secret.
"""

from __future__ import annotations

from smara.secrets.rule import Rule, Shape

_REACH_BYTES = 256
# The rest of the name, then what may close it: quotes, brackets, Markdown stars.
_NAME_REST = r"[\w.-]{0,24}[\\\"'`*\]]{0,4}[ \t]{0,6}"
# `=`, `:`, `:=`, `=>`, `==`, `||`, `?=`, `>`, and a typed declaration: `token: str =`.
_ASSIGN = r"(?::[ ]{0,2}[&'\w<>\[\]. |]{1,24}=|[:=!?]{1,3}={0,2}>?[*]{0,2}|\|\||>)[ \t]{0,8}"
# `("token", "…")`, `set_token("…")`, `key="token" value="…"`.
_ARGUMENT = r"(?:,[ \t\n]{0,4}|\([ ]?|value[ ]?=[ ]?)"
_QUOTE = r"\\{0,3}[\"'`]"
_VALUE = (
    rf"(?:{_ASSIGN}(?:[frbu]{{0,2}}{_QUOTE}([^\"'`\n]{{6}})|([^\s\"'`\\,;]{{6}}))"
    rf"|{_ARGUMENT}(?:{_QUOTE}([^\"'`\n]{{6}})|([^\s\"'`\\,;(){{}}\[\]]{{16}})))"
)
_VALUE_OPENING = _VALUE.replace("([^", "(?:[^")


def assigned(
    name: str, label: str, word: str, shape: Shape, rest: str = _NAME_REST, is_bounded: bool = False
) -> Rule:
    """A value that follows a name and an assignment sign, in any of the usual syntaxes."""
    return Rule(
        name,
        label,
        keywords=(f"(?i:{word})",),
        following=f"{rest}{_VALUE_OPENING}",
        pattern=f"(?i:{word}){rest}{_VALUE}",
        shape=shape,
        reach_bytes=_REACH_BYTES,
        is_open=True,
        is_bounded=False,
    )


def option(name: str, label: str, word: str, shape: Shape) -> Rule:
    """A value that follows a command-line option and a space."""
    opening = rf"-(?i:(?:{word})[a-z-]{{0,12}})[ \t]{{1,3}}"
    return Rule(
        name,
        label,
        keywords=(rf"{opening}\\?[\"']?[^\s\"'\\-]",),
        pattern=rf"{opening}(?:{_QUOTE}([^\"'`\n]{{6}})|([^\s\"'`\\;|]{{6}}))",
        shape=shape,
        is_open=True,
        reach_bytes=_REACH_BYTES,
        is_bounded=False,
    )


def told(name: str, label: str, word: str) -> Rule:
    """A value named in a sentence: "the password for staging is …"."""
    verb = r"(?:(?:for|to|of|on|in) [\w .@'-]{1,40} )?(?:is|was|are)(?: now| set to| still)?:? "
    return Rule(
        name,
        label,
        keywords=(f"(?i:{word}) ",),
        following=rf"{verb}[\"'`*]{{0,3}}[^\s\"'`*]{{6}}",
        pattern=rf"(?i:{word}) {verb}[\"'`*]{{0,3}}([^\s\"'`*]{{6,}})",
        shape="prose",
        reach_bytes=_REACH_BYTES,
    )


PASSWORD = "passw(?:or)?d|passwd|passphrase|passwort|passcode|pwd"  # noqa: S105  # words that announce a secret
SECRET = "secret"  # noqa: S105  # words that announce a secret
TOKEN = "token"  # noqa: S105  # words that announce a secret
KEY = (
    "(?:api|access|auth|private|secret|encrypt|encryption|signing|account|master|service|shared|subscription|license"
    "|storage|deploy|app|application|admin|jwt|hmac|aes|crypto|webhook|session|consumer|integration|function|root)"
    "[_ .-]?key"
)
CREDENTIAL = "credentials?|creds|(?:basic|http|proxy)[_-]?auth|sessid|phpsessid|connect\\.sid"

# Vendors whose credentials have no mark of their own and are known only by the name before them.
NAMED_VENDORS = (
    "adafruit", "adobe", "airtable", "algolia", "alibaba", "amplitude", "appsflyer", "artifactory",
    "asana",
    "atlassian", "auth0", "azure", "beamer", "binance", "bitbucket", "bittrex", "braintree",
    "bugsnag", "cloudflare",
    "cloudinary", "codecov", "cohere", "coinbase", "confluence", "confluent", "contentful",
    "datadog", "discord",
    "docusign", "droneci", "dropbox", "elastic", "elevenlabs", "etherscan", "etsy", "facebook",
    "fastly", "finicity",
    "finnhub", "flickr", "freshbooks", "gitter", "gocardless", "heroku", "honeycomb", "hubspot",
    "infura", "intercom",
    "jfrog", "jira", "kraken", "kucoin", "launchdarkly", "linkedin", "linode", "logdna", "looker",
    "mailchimp", "mailgun", "mapbox", "mattermost", "meraki", "messagebird", "mistral", "mixpanel",
    "netlify",
    "newrelic", "ngrok", "nytimes", "okta", "opsgenie", "pagerduty", "paypal", "plaid", "privateai",
    "pusher",
    "rapidapi", "rollbar", "segment", "sendbird", "sentry", "sidekiq", "snyk", "sonar", "spotify",
    "squarespace",
    "sumologic", "supabase", "telegram", "travis", "trello", "twilio", "twitch", "twitter",
    "typeform", "vercel",
    "vonage", "yandex", "zendesk", "zoom",
)  # fmt: skip
_OTHER_SPELLINGS = {
    "alibaba": "alibaba|aliyun",
    "linkedin": "linked[_-]?in",
    "messagebird": "message[_-]?bird",
    "newrelic": "new[_-]?relic",
    "nytimes": "nytimes|new[_-]?york[_-]?times",
    "privateai": "private[_-]?ai",
    "sumologic": "sumo",
    "jfrog": "jfrog|xray",
    "sidekiq": "sidekiq|contribsys",
}


def _named_vendor(vendor: str) -> Rule:
    return assigned(
        f"named-{vendor}", f"{vendor}-key", _OTHER_SPELLINGS.get(vendor, vendor), shape="token"
    )


ASSIGNMENTS: tuple[Rule, ...] = (
    *map(_named_vendor, NAMED_VENDORS),
    assigned("assigned-password", "password", PASSWORD, shape="password"),
    assigned(
        "assigned-pass",
        "password",
        r"(?:\b|[_-])pass",
        shape="password",
        rest=r"[\\\"'\]]{0,4}[ \t]{0,3}",
    ),
    assigned("assigned-secret", "secret", SECRET, shape="token"),
    assigned("assigned-key", "api-key", KEY, shape="token"),
    assigned("assigned-token", "token", TOKEN, shape="token"),
    assigned("assigned-credential", "credential", CREDENTIAL, shape="token"),
    option("option-password", "password", PASSWORD, shape="password"),
    option("option-secret", "secret", SECRET, shape="token"),
    option("option-key", "api-key", "api-?key|access-?key", shape="token"),
    option("option-token", "token", TOKEN, shape="token"),
    told("told-password", "password", f"{PASSWORD}|pass"),
    told("told-secret", "secret", "secret(?: key)?"),
    told("told-key", "api-key", "(?:api|access) ?key"),
    told("told-token", "token", TOKEN),
)
