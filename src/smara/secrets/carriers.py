"""Secrets that are known by what carries them: key blocks, URLs, headers, credential files."""

from __future__ import annotations

from smara.secrets.rule import BASE64, Rule

# The body of a key block runs to its END line and holds no five dashes, whatever prefixes its lines
# have: indentation, diff signs, line numbers, string concatenation, an escaped "\n".
_BLOCK_BODY = r"(?:-{0,4}[^-])*?"
_BLOCK_LINES = r"(?:(?:\\+[nr]|[\s\"'+>|,;#*]){1,16}[A-Za-z0-9+/=]{16,})+"


def _key_block(name: str, label: str, kind: str) -> Rule:
    """A PEM or PGP block; when its END was cut off, as far as its lines of base64 go."""
    begin = f"-----BEGIN {kind}-----"
    return Rule(
        name,
        label,
        keywords=(begin,),
        pattern=rf"({begin}(?:{_BLOCK_BODY}{BASE64}{{16}}{_BLOCK_BODY}-----END {kind}-----"
        rf"|{_BLOCK_LINES}))",
        is_bounded=False,
        reach_bytes=32768,
    )


KEY_BLOCKS = (
    _key_block("pem-private-key", "private-key", "(?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY"),
    _key_block("pgp-private-key", "private-key", "PGP PRIVATE KEY BLOCK"),
    Rule(
        "ssh2-private-key",
        "private-key",
        ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",),
        pattern=r"(---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?:-{0,3}[^-])*?---- END SSH2 "
        r"ENCRYPTED "
        r"PRIVATE KEY ----)",
        is_bounded=False,
    ),
    Rule(
        "putty-private-key",
        "private-key",
        (r"Private-Lines: ?[0-9]{1,3}",),
        pattern=rf"Private-Lines: ?[0-9]{{1,3}}(?:\\+[nr]"
        rf"|\s){{1,6}}({BASE64}{{16,}}=*(?:{_BLOCK_LINES})?)",
    ),
    Rule(
        "pem-private-key-encoded",
        "private-key",
        ("LS0tLS1CRUdJTi[A-Za-z0-9+/]{10}",),
        # "-----BEGIN " followed by RSA/EC/OPENSSH/ENCRYPTED/DSA or PRIVATE; certificates start with
        # "Q0VS".
        pattern=r"(LS0tLS1CRUdJTi(?:BSU0Eg|BFQy|BPUEVOU1NI|BFTkNSWVBURUQg|BEU0Eg|BQUklWQVRF"
        rf"|BQR1AgUFJJVkFUR){BASE64}{{60,}}=*)",
    ),
)

_QUERY_NAME = (
    "[?&](?i:access_token|auth_token|api_?key|token|key|secret|signature|x-amz-signature|x-amz-security-token"
    "|code|password|passwd|pwd)="
)

URLS = (
    Rule(
        "url-password",
        "password",
        (r"://[^\s/:@?#\"'<>`\\]{0,80}:[^\s/@\"'<>`\\]{1,160}@",),
        pattern=r"://[^\s/:@?#\"'<>`\\]{0,80}:([^\s/@\"'<>`\\]{1,160})@[A-Za-z0-9\[]",
        shape="url",
        is_bounded=False,
    ),
    Rule(
        "url-token-user",
        "token",
        (r"https?://[A-Za-z0-9_-]{20,200}@[a-z0-9]",),
        pattern=r"https?://([A-Za-z0-9_-]{20,200})@[a-z0-9.-]+",
        shape="token",
        is_bounded=False,
    ),
    Rule(
        "url-query-credential",
        "token",
        (f"{_QUERY_NAME}[A-Za-z0-9%_.-]{{6}}",),
        pattern=f"{_QUERY_NAME}([A-Za-z0-9%_.~+/=-]{{8,}})",
        shape="token",
        is_bounded=False,
    ),
)

# Between a header's name and its value, also when both are strings of code or of JSON.
_COLON = r"[\"'\\]{0,3}[ ]{0,2}[:=,][ ]{0,2}[\"'\\]{0,3}"
_AUTHORIZATION = f"(?i:authorization){_COLON}"
_SCHEME = (
    "(?:(?i:token|apikey|api-key|key|ssws|digest|negotiate|ntlm|splunk|geniekey|bot|jwt|sso-key|aws4-hmac-sha256"
    "|klaviyo-api-key|deepl-auth-key)[ ])?(?i:token=|key=)?[\"']?"
)
_SIGNS = "[A-Za-z0-9._~+/=|:-]"
_COOKIE = rf"(?i:cookie){_COLON}"
_COOKIE_NAME = r"[^\s=;\"'\\]{1,64}="
_COOKIE_SIGNS = r"[^\s;\"'\\]"
_CUSTOM_HEADER = rf"(?i:x-[a-z0-9-]{{0,24}}(?:key|token|secret|auth|signature)){_COLON}"

HEADERS = (
    Rule(
        "authorization-bearer",
        "bearer-token",
        (f"(?i:bearer)[ +][ ]{{0,2}}[\"']?{_SIGNS}{{12}}", f"(?i:bearer)%20{_SIGNS}{{12}}"),
        pattern=f"(?i:bearer)(?:[ +][ ]{{0,2}}|%20)[\"']?({_SIGNS}{{12,}})",
        shape="token",
    ),
    Rule(
        "authorization-basic",
        "basic-auth",
        (f"{_AUTHORIZATION}(?i:basic)[ ]",),
        pattern=f"{_AUTHORIZATION}(?i:basic)[ ]{{1,3}}({BASE64}{{6,}}={{0,2}})",
    ),
    Rule(
        "authorization-scheme",
        "authorization",
        (f"{_AUTHORIZATION}{_SCHEME}{_SIGNS}{{10}}",),
        pattern=f"{_AUTHORIZATION}{_SCHEME}({_SIGNS}{{10,}})",
        shape="token",
    ),
    Rule(
        "cookie-session",
        "cookie",
        (f"{_COOKIE}{_COOKIE_NAME}{_COOKIE_SIGNS}{{8}}",),
        pattern=f"{_COOKIE}({_COOKIE_NAME}{_COOKIE_SIGNS}{{8,}}(?:; "
        f"?{_COOKIE_NAME}{_COOKIE_SIGNS}*)*)",
        shape="random",
    ),
    Rule(
        "curl-user",
        "password",
        (r"curl[^\n]{0,200}? (?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:",),
        pattern=r"curl[^\n]{0,200}? (?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:([^\s\"']{4,})",
        shape="password",
    ),
    Rule(
        "named-header",
        "api-key",
        (f"{_CUSTOM_HEADER}[A-Za-z0-9_.~+/=-]{{8}}",),
        pattern=f"{_CUSTOM_HEADER}([A-Za-z0-9_.~+/=-]{{8,}})",
        shape="token",
    ),
)

_AWS_NAME = (
    r"(?i:secret_?access_?key"
    r"|aws[a-z_.-]{0,12}secret[a-z_.-]{0,12})[\"'\\\]]{0,3}\s{0,3}[:=>,]{1,2}"
)

FILES = (
    Rule(
        "netrc-password",
        "password",
        (r"(?:login|account|user)[ \t\n]\S+\s{1,6}password[ \t]",),
        pattern=r"(?:login|account|user)\s\S+\s{1,6}password[ \t]{1,4}(\S{4,})",
        shape="password",
    ),
    Rule(
        "npmrc-auth",
        "npm-token",
        (r"_(?:authToken|auth|password)[ ]?=[ ]?[\"']?[A-Za-z0-9+/_=-]{6}",),
        pattern=r"_(?:authToken|auth|password)[ ]?=[ ]?[\"']?([A-Za-z0-9+/_=-]{8,})",
        shape="token",
        is_bounded=False,
    ),
    Rule(
        "docker-config-auth",
        "docker-auth",
        (r"\\*\"(?:auth|identitytoken|registrytoken)\\*\"\s{0,3}:\s{0,3}\\*\"[A-Za-z0-9+/_=-]{8}",),
        pattern=r"\\*\"(?:auth|identitytoken"
        r"|registrytoken)\\*\"\s{0,3}:\s{0,3}\\*\"([A-Za-z0-9+/_=.-]{8,})",
        shape="random",
        is_bounded=False,
    ),
    Rule(
        "pgpass-line",
        "password",
        (r":5432:[^\s:]{1,64}:[^\s:]{1,64}:[^\s:]{4}",),
        pattern=r":5432:[^\s:]{1,64}:[^\s:]{1,64}:([^\s:]{4,})",
        shape="password",
        is_bounded=False,
    ),
    Rule(
        "aws-secret-key",
        "aws-secret-key",
        (_AWS_NAME,),
        pattern=rf"{_AWS_NAME}\s{{0,3}}[\"'\\]{{0,3}}({BASE64}{{40}})(?:[^A-Za-z0-9+/]|\z)",
        min_entropy=3.6,
        is_bounded=False,
    ),
)

CARRIERS: tuple[Rule, ...] = (*KEY_BLOCKS, *URLS, *HEADERS, *FILES)
