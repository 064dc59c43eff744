"""List all detection rules, the most certain first.

Carrier rules know key blocks, URLs, headers and credential files. Assignment rules know
`password = …`, `"api_key": …` and `--token …`. Where two rules match one secret, the
earlier rule names it.
"""

from __future__ import annotations

import re

from smara.secrets.rule import BASE64, Rule, Shape
from smara.secrets.vendors import VENDORS

# The body of a key block runs to its END line and holds no five dashes, whatever prefixes its lines
# have: indentation, diff signs, line numbers, string concatenation, an escaped "\n".
_BLOCK_BODY = r"(?:-{0,4}[^-])*?"
_BLOCK_JOINT = r"(?:\\+[nr]|[\s\"'+>|,;#*]){1,16}(?:[0-9]{1,6}(?:[:|]|\t|- |  ?)[ \t+>|-]{0,4})?"
_BLOCK_LINES = rf"(?:{_BLOCK_JOINT}[A-Za-z0-9+/=]{{16,}})+"


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


_KEY_END = "-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----"

KEY_BLOCKS = (
    _key_block("pem-private-key", "private-key", "(?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY"),
    _key_block("pgp-private-key", "private-key", "PGP PRIVATE KEY BLOCK"),
    Rule(
        "private-key-tail",
        "private-key",
        (_KEY_END,),
        pattern=rf"([A-Za-z0-9+/=]{{24,}}(?:{_BLOCK_LINES})?(?:{_BLOCK_JOINT})?{_KEY_END})",
        is_bounded=False,
        lookback_bytes=8192,
    ),
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
        # A password may hold an at sign of its own, but no host and no query follows it then.
        pattern=r"://[^\s/:@?#\"'<>`\\]{0,80}:"
        r"([^\s/@\"'<>`\\]{1,160}(?:@[^\s/@.:?&=,\"'<>`\\]{0,64}){0,4})@[A-Za-z0-9\[]",
        shape="url",
        is_bounded=False,
    ),
    Rule(
        "url-password-encoded",
        "password",
        (r"%3[Aa]%2[Ff]%2[Ff][^\s%\"'&<>]{0,80}%3[Aa]",),
        pattern=r"%3[Aa]%2[Ff]%2[Ff][^\s%\"'&<>]{0,80}%3[Aa]([^\s\"'&<>]{1,160}?)%40",
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
        shape="url",
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

# Programs, and the option after which they take a password. It may be anything but a variable.
_COMMANDS = (
    ("mysql(?:dump|admin|import|show)?|mariadb(?:-dump|-admin)?|7z|7za", "-p"),
    ("sshpass", "-p ?"),
    (
        "(?:docker|podman|nerdctl|helm registry|oras|crane auth|az acr|skopeo) login",
        "(?:-p|--password)[ =]",
    ),
    ("redis-cli|valkey-cli", "(?:-a|--pass)[ =]"),
    ("mongo|mongosh|mongodump|mongorestore|mongoimport|mongoexport", "(?:-p|--password)[ =]"),
    ("sqlcmd|bcp|zip|unzip", "-P ?"),
    ("ldap(?:search|add|modify|delete|whoami)", "-w ?"),
    ("twine upload|svn|wget|hg", "(?:-p|--password|--http-password|--ftp-password)[ =]"),
    ("gh (?:secret|variable) set", "(?:-b|--body)[ =]"),
    ("aws configure set", "(?:aws_secret_access_key|aws_session_token) "),
    ("openssl", "-pass(?:in|out)? pass:"),
    ("htpasswd", r"-[a-zA-Z]*b[a-zA-Z]* \S{1,128} \S{1,64} "),
    ("smbclient|rpcclient|mount.cifs", r"-U ?[\"']?[^\s%\"']{1,64}%"),
    ("az (?:login|keyvault secret set)", "(?:-p|--password|--value)[ =]"),
    ("poetry config", r"http-basic\.\S{1,64} \S{1,64} "),
    ("https?|xhs?", r"(?:-a|--auth)[ =][^\s:]{1,64}:"),
    ("rabbitmqctl", r"(?:add_user|change_password) \S{1,64} "),
    ("lftp", r"-u ?[^\s,]{1,64},"),
    ("net use", r"\\\\\S{1,128} "),
    ("mc (?:alias set|config host add)", r"\S{1,64} https?://\S{1,128} \S{1,64} "),
)  # fmt: skip
_ARGUMENT_VALUE = r"\\{0,2}[\"']?([^\s\"'\\;|&<>]{4,128})"

COMMANDS = (
    *(
        Rule(
            f"command-{re.split(r'[^a-z]', programs)[0] or 'login'}",
            "password",
            (rf"(?:{programs})[ ]",),
            pattern=rf"(?:{programs})[ ](?:[^\n|;]{{0,300}}?[ ])?{given}{_ARGUMENT_VALUE}",
            shape="url",
            reach_bytes=1024,
        )
        for programs, given in _COMMANDS
    ),
    Rule(
        "command-stdin",
        "password",
        ("--password-stdin", r"\|[ ]?(?:sudo )?chpasswd", r"\|[ ]?sudo -[A-Za-z]{0,6}S"),
        pattern=r"(?:echo|printf)[ ](?:-[neE]{1,3} |[\"']?%s[\"']? )?[\"']?"
        r"([^\s\"'|]{4,128})[\"']?[ ]?\|(?:[^\n|]{0,80}--password-stdin|[ ]?(?:sudo )?chpasswd"
        r"|[ ]?sudo -[A-Za-z]{0,6}S)",
        shape="url",
        is_bounded=False,
        lookback_bytes=300,
    ),
)

CARRIERS: tuple[Rule, ...] = (*KEY_BLOCKS, *URLS, *HEADERS, *FILES, *COMMANDS)


_REACH_BYTES = 256
# The rest of the name, then what may close it: quotes, brackets, Markdown stars.
_NAME_REST = r"[\w.-]{0,24}[\\\"'`*\]]{0,4}[ \t]{0,6}"
# `=`, `:`, `:=`, `=>`, `==`, `||`, `?=`, `>`, and a typed declaration: `token: str =`.
# and the colon and the equals sign of full width.
_ASSIGN = (
    r"(?::[ ]{0,2}[&'\w<>\[\]. |]{1,24}=|[:=!?]{1,3}={0,2}>?[*]{0,2}|\|{1,2}|>|\xef\xbc[\x9a\x9d]"
    r"|</key>\s{0,20}<string>|\{ get;[^}]{0,20}\}[ ]?=)"
    r"[ \t]{0,8}"
)
# `("token", "…")`, `set_token("…")`, `key="token" value="…"`.
_ARGUMENT = r"(?:,[ \t\n]{0,4}|\([ ]?|value[ ]?=[ ]?)"
_QUOTE = r"\\{0,3}[\"'`]"
_VALUE = (
    rf"(?:{_ASSIGN}(?:[frbu@]{{0,2}}{_QUOTE}([^\"'`\n]{{6}})|([^\s\"'`\\,;]{{6}}))"
    rf"|{_ARGUMENT}(?:{_QUOTE}([^\"'`\n]{{6}})|([^\s\"'`\\,;(){{}}\[\]]{{16}})))"
)
_VALUE_OPENING = _VALUE.replace("([^", "(?:[^")


def _alternatives(*words: str) -> str:
    """Words as bytes of UTF-8, for the engine reads bytes."""
    return "|".join(
        "".join(chr(byte) if byte < 128 else f"\\x{byte:02x}" for byte in word.encode())
        for word in words
    )


def assignment_rule(name: str, label: str, word: str, shape: Shape, rest: str = _NAME_REST) -> Rule:
    """Return a rule for a value after a name and sign.

    In any of the usual syntaxes.
    """
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
    opening = rf"\B-(?i:(?:[a-z]{{1,16}}-){{0,2}}(?:{word})[a-z-]{{0,12}})[ \t]{{1,3}}"
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


def prose_rule(name: str, label: str, word: str) -> Rule:
    """A value named in a sentence: "the password for staging is …"."""
    place = (
        r"(?:(?:is|was) (?:generated|created|set) )?"
        rf"(?:for|to|of|on|in|from|de|du|do|da|del|della|der|von|para|{_alternatives('für')})"
        r" [\w .@'\x80-\xff-]{1,40}?"
    )
    verbs = _alternatives(
        *(
            "is",
            "was",
            "are",
            "to",
            "ist",
            "lautet",
            "est",
            "es",
            "è",
            "é",
            "—",
            "–",
            "-",
            "→",
            "->",
        )
    )
    verb = rf"(?:{place} ?: |(?:{place} )?(?:{verbs})(?: now| set to| still)?:? |still |: |)"
    # Any sign of ASCII but quotes and stars: a sentence may go on in its own letters.
    sign = "[!#-&()+-_a-~]"
    named = rf"(?i:{word})(?:(?:'s)? |[ ]?(?:{_alternatives('は', '是', '为')})[ ]?)"
    return Rule(
        name,
        label,
        keywords=(named,),
        following=rf"{verb}[\"'`*]{{0,3}}{sign}{{6}}",
        pattern=rf"{named}{verb}[\"'`*]{{0,3}}({sign}{{6,}})",
        shape="prose",
        reach_bytes=_REACH_BYTES,
        is_bounded=False,  # a word of other letters has no boundary in bytes
    )


# Words that announce a secret, also in other languages.
_ABROAD = _alternatives(
    "contraseña", "mot de passe", "senha", "palavra-passe", "wachtwoord", "kennwort", "passord",
    "lösenord", "adgangskode", "salasana", "heslo", "hasło", "jelszó", "parola", "parolă", "пароль",
    "κωδικός", "şifre", "mật khẩu", "kata sandi", "密码", "密碼", "口令", "パスワード", "비밀번호",
    r"\bmdp",
)  # fmt: skip
PASSWORD = rf"passw(?:or)?d|passwd|passphrase|passwort|passcode|authtok\b|pwd|\bpsk|{_ABROAD}"
KEY = (
    "(?:api|access|auth|private|secret|encrypt|encryption|signing|account|master|service|shared|subscription|license"
    "|storage|deploy|app|application|admin|jwt|hmac|aes|crypto|webhook|session|consumer|integration|function|root)"
    f"[_ .-]?key|{_alternatives('密钥', '密鑰')}"
)

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


# SQL, PowerShell and the pair of a name and a password that HTTP clients take.
_BEFORE_LITERAL = r"identified by|securestring|password(?: for [^\s=]{1,80})?"
_PAIR = r"(?:auth[ ]?=[ ]?|BasicAuth)\([\"'][^\s\"']{1,64}[\"'],[ ]?"
# `- name: DB_PASSWORD` and its value in the next line; `ENV DB_PASSWORD …`, `#define`, Terraform.
_CAPITALS = "(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD|SECRET|_password|_secret)"
_VALUE_BELOW = r"[\"']?[ ]?\{?\s{1,20}(?:value|default)\s?[:=]"

ASSIGNMENTS: tuple[Rule, ...] = (
    *(
        assignment_rule(
            f"named-{vendor}",
            f"{vendor}-key",
            {
                "alibaba": "alibaba|aliyun",
                "linkedin": "linked[_-]?in",
                "messagebird": "message[_-]?bird",
                "newrelic": "new[_-]?relic",
                "nytimes": "nytimes|new[_-]?york[_-]?times",
                "privateai": "private[_-]?ai",
                "sumologic": "sumo",
                "jfrog": "jfrog|xray",
                "sidekiq": "sidekiq|contribsys",
            }.get(vendor, vendor),
            shape="token",
        )
        for vendor in NAMED_VENDORS
    ),
    assignment_rule("assigned-password", "password", PASSWORD, shape="password"),
    assignment_rule(
        "assigned-pass",
        "password",
        r"(?:\b|[_-])(?:pass|pw)",
        shape="password",
        rest=r"[\\\"'\]]{0,4}[ \t]{0,3}",
    ),
    assignment_rule("assigned-secret", "secret", "secret", shape="token"),
    assignment_rule("assigned-key", "api-key", KEY, shape="token"),
    assignment_rule("assigned-token", "token", "token", shape="token"),
    assignment_rule(
        "assigned-credential",
        "credential",
        "credentials?|creds|(?:basic|http|proxy)[_-]?auth|sessid|phpsessid|connect\\.sid",
        shape="token",
    ),
    option("option-password", "password", rf"{PASSWORD}|[a-z]{{3,8}}pass", shape="password"),
    option("option-secret", "secret", "secret", shape="token"),
    option("option-key", "api-key", "api-?key|access-?key", shape="token"),
    option("option-token", "token", "token", shape="token"),
    Rule(
        "literal-password",
        "password",
        (rf"(?i:{_BEFORE_LITERAL})[ ]{{1,3}}(?:=[ ]?)?[Nn]?['\"]", _PAIR),
        pattern=rf"(?:(?i:{_BEFORE_LITERAL})[ ]{{1,3}}(?:=[ ]?)?[Nn]?|{_PAIR})"
        r"['\"]([^\s'\"]{4,128})['\"]",
        shape="password",
    ),
    Rule(
        "named-value",
        "password",
        (rf"{_CAPITALS}{_VALUE_BELOW}", rf"{_CAPITALS}[ ]{{1,4}}[\"']?[^\s=:\"']"),
        pattern=rf"{_CAPITALS}(?:{_VALUE_BELOW}\s?|[ ]{{1,4}})[\"']?"
        r"([^\s\"']{6,128})[\"']?(?:\n|\z)",
        shape="password",
        is_bounded=False,
    ),
    Rule(
        "password-below",
        "password",
        (rf"(?i:{PASSWORD})[\"'`*]{{0,3}}:[ ]?\n{{1,2}}[ \t]{{0,8}}[!-~]{{6}}",),
        pattern=rf"(?i:{PASSWORD})[\"'`*]{{0,3}}:[ ]?\n{{1,2}}[ \t]{{0,8}}([!-~]{{6,64}})(?:\n|\z)",
        shape="prose",
        is_bounded=False,
    ),
    Rule(
        "password-before",
        "password",
        (rf"as (?:the |a |your |my |its )?(?:[a-z]{{1,16}} )?(?i:{PASSWORD})",),
        pattern=r"[\"'`]?([!#-&()+-_a-~]{6,64})[\"'`]? as (?:the |a |your |my |its )?"
        rf"(?:[a-z]{{1,16}} )?(?i:{PASSWORD})",
        shape="prose",
        is_bounded=False,
        lookback_bytes=80,
    ),
    prose_rule("told-password", "password", rf"{PASSWORD}|\b(?:pass|pw)"),
    prose_rule("told-secret", "secret", r"\bsecret(?: key)?"),
    prose_rule(
        "told-key",
        "api-key",
        r"\b(?:api|access) ?key|clave(?: de acceso| api)?|\b(?:recovery|backup) codes?|"
        + _alternatives("schlüssel", "clé api", "clé d'api"),
    ),
    prose_rule("told-token", "token", r"\btoken"),
)


_USER = r"[A-Za-z0-9_.@+\\-]{1,64}"
_MIXED = (
    r"([!#-&+-_a-~]{0,48}(?:[0-9!#%*+=@^~?$]|[A-Z][a-z][A-Z]|[a-z][A-Z]{2}"
    r"|[a-z]-[a-z]{3,16}-[a-z]{3,16}-[a-z])[!#-&+-_a-~]{0,80})"
)
_NAMED = rf"(?i:{PASSWORD}|[_-](?:pass|pw)\b)"


def _nearby(name: str, opening: str, rest: str, shape: Shape = "near") -> Rule:
    """A value near a word that announces it, with no sign to tie them."""
    return Rule(
        name,
        "password",
        (opening,),
        pattern=opening + rest,
        shape=shape,
        is_bounded=False,
        reach_bytes=768,
    )


NEARBY: tuple[Rule, ...] = (
    _nearby(  # `tool --proxy-user ann:…`
        "option-pair",
        r"\B-{1,2}(?:[a-z]{1,12}-)?(?:user|auth|creds?|credentials?)[ =]",
        rf"[\"']?{_USER}:([^\s\"']{{4,128}})",
        shape="argument",
    ),
    _nearby(  # `tool -u ann -p …`
        "option-after-user",
        r"[ ](?:-[uU]|--?user(?:name)?|/u(?:ser)?|/ru)[ =:]",
        rf"[\"']?{_USER}[\"']?[ ](?:[^\n|;]{{0,120}}?[ ])?"
        r"(?:-[pPwA]|/r?p(?:ass(?:word)?)?|--?pass(?:word|wd|phrase)?)[ =:]" + _ARGUMENT_VALUE,
        shape="argument",
    ),
    _nearby(
        "account-with-password",
        r"\bnet user[ ]",
        rf"{_USER}[ ]([^\s/\"']{{4,64}})",
        shape="argument",
    ),
    _nearby(  # `client.login("ann", "…")`
        "call-pair",
        r"(?i:log_?in|log_?on|sign_?in|basic_?auth|authenticat\w{0,3}|credentials?|connect(?:ion)?"
        r"|PDO)\(",
        rf"[^()\"'\n]{{0,60}}[\"']{_USER}[\"'],[ ]?[\"']([^\s\"']{{6,64}})[\"']",
    ),
    _nearby(  # `creds: ann/…`
        "user-pair",
        r"\b(?i:creds?|credentials|log ?in)\b",
        rf"[^\n=;(){{}}\"'`]{{0,24}}?[ :]{_USER} ?[/:] ?([!-~]{{6,64}})",
    ),
    _nearby(
        "near-quoted",
        _NAMED,
        r"[\w.-]{0,24}[\"'`\])]{0,3}[^\n\"'`;]{0,40}[\"'`]([^\s\"'`]{6,64})[\"'`]",
    ),
    _nearby(  # `requirepass …`
        "directive",
        r"(?i:pass(?:word|wd|phrase|code)?|pw|authtok|secret)[ \t]{1,4}",
        r"([!-~]{6,64})[ \t]*(?:\n|\z)",
    ),
    _nearby(
        "near-line",
        _NAMED,
        r"[\w.-]{0,24}[ \t]{0,3}[:=][ \t]{0,3}([!-~]{8,64})[ \t]*(?:\n|\z)",
    ),
    _nearby(  # the last column of a table
        "column",
        rf"(?i:{PASSWORD})[\"' ]{{0,2}}[|]?[ ]?\n",
        r"(?:[|][-:| ]{3,200}\n)?(?:[^\n]{0,200}\[REDACTED:[^\n]{0,80}\n)*[^\n]{0,200}?[,;|\t][ ]?"
        r"[\"']?([^\s\"',;|]{6,64})[\"']?[ ]?[|]?(?:\n|\z)",
    ),
    _nearby(
        "near-word",
        rf"(?i:{PASSWORD}|\b(?:pass|pw):|\bclave)",
        r"[A-Za-z \x80-\xff,'.()-]{0,40}?(?:[:=] {0,2}|[ (\x80-\xff]|->)[\"'`*]{0,2}" + _MIXED,
    ),
    Rule(
        "before-word",
        "password",
        (rf"(?i:{PASSWORD})",),
        pattern=rf"[\s\"'`(]{_MIXED}[\"'`]?[ ,](?:[A-Za-z ,']{{0,40}}[ ])?(?i:{PASSWORD})",
        shape="near",
        is_bounded=False,
        lookback_bytes=100,
        reach_bytes=64,
    ),
)
"""Rules in which nothing but nearness ties a value to its word. They come last."""

RULES: tuple[Rule, ...] = (*VENDORS, *CARRIERS, *ASSIGNMENTS, *NEARBY)
