"""Test cheaply whether a text may contain a secret, for hooks.

A hook cannot load the scanner at every call. This filter may raise a false alarm but never
misses what the scanner would find; only suspect texts are scanned. It imports nothing
that is not loaded already. The openings of vendors' formats are data: `secret_prefilter.tsv`,
generated from the rules by `smara.secrets.openings`.
"""

import os

from smara.core.veils import is_veiled, unveil

MOST_BYTES = 128 << 10
"""A longer text is looked at properly: that is quicker then."""
_WINDOW = 320
"""How far before a value its name may stand, escapes counted."""
_MOST_RANDOM = 400
"""A text with more random runs than this is looked at properly."""
_DIGITS, _LOWER, _UPPER = b"0123456789", bytes(range(97, 123)), bytes(range(65, 91))
_WORD = frozenset(_DIGITS + _LOWER + _UPPER)
# Every byte as the kind it is of: a digit, a small letter, a capital, or anything else.
_KINDS = bytes(
    48 if each in _DIGITS else 97 if each in _LOWER else 65 if each in _UPPER else 32
    for each in range(256)
)
_BACKSLASH = ord("\\")
_SIGNS = frozenset(b"!@#$%^&*+=?~|;")
# What names of secrets hold.
_WORDS = b"""
    secret token key credential creds sessid connect.sid bearer authorization basic_auth basic-auth basicauth
    http_auth http-auth httpauth proxy_auth proxy-auth proxyauth _auth "auth auth\\ signature code= pass pwd curl
"""  # noqa: E501
# Vendors whose keys have no mark of their own.
_VENDORS = b"""
    adafruit adobe airtable algolia alibaba aliyun amplitude appsflyer artifactory asana atlassian auth0 azure
    beamer binance bitbucket bittrex braintree bugsnag cloudflare cloudinary codecov cohere coinbase confluence
    confluent contentful datadog discord docusign droneci dropbox elastic elevenlabs etherscan etsy facebook fastly
    finicity finnhub flickr freshbooks gitter gocardless heroku honeycomb hubspot infura intercom jfrog xray jira
    kraken kucoin launchdarkly linkedin linked_in linked-in linode logdna looker mailchimp mailgun mapbox mattermost
    meraki messagebird message_bird message-bird mistral mixpanel netlify newrelic new_relic new-relic ngrok nytimes
    newyorktimes new_york_times new-york-times new_yorktimes new-yorktimes newyork_times newyork-times okta opsgenie
    pagerduty paypal plaid privateai private_ai private-ai pusher rapidapi rollbar segment sendbird sentry sidekiq
    contribsys snyk sonar spotify squarespace sumo supabase telegram travis trello twilio twitch twitter typeform
    vercel vonage yandex zendesk zoom
"""  # noqa: E501
_NAMES = (*_WORDS.split(), *_VENDORS.split())
_PASSWORDS = (
    b"pass", b"pwd", b"pw", b"contrase\xc3\xb1a", b"contrase\\u00f1a", b"senha", b"wachtwoord",
    b"kennwort",
    # пароль, hasło, şifre, 密码, 密碼, 口令, パスワード, 비밀번호, in UTF-8 and as JSON writes them
    b"\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c",
    b"\\u043f\\u0430\\u0440\\u043e\\u043b\\u044c",
    b"has\xc5\x82o", b"has\\u0142o", b"\xc5\x9fifre", b"\\u015fifre",
    b"\xe5\xaf\x86\xe7", b"\\u5bc6\\u7", b"\xe5\x8f\xa3\xe4\xbb\xa4", b"\\u53e3\\u4ee4",
    b"\xe3\x83\x91\xe3\x82\xb9\xe3\x83\xaf", b"\\u30d1\\u30b9\\u30ef",
    b"\xeb\xb9\x84\xeb\xb0\x80", b"\\ube44\\ubc00",
    # lösenord, jelszó, κωδικός, mật khẩu, by what of them is the same in JSON
    b"senord", b"jelsz", b"adgangskode", b"salasana", b"heslo", b"parol", b"kata sandi",
    b"\xce\xba\xcf\x89\xce\xb4", b"\\u03ba\\u03c9\\u03b4", b"kh\xe1\xba\xa9u", b"kh\\u1ea9u",
    b"identified by", b"securestring", b"mdp", b"psk", b"authtok",
    b"\xc3\xbcssel", b"\\u00fcssel", b"cl\xc3\xa9", b"cl\\u00e9",
    b"\xe5\xaf\x86\xe9", b"\\u5bc6\\u9",
)  # fmt: skip
_COMMANDS = (
    (b"mysql", b" -p"), (b"mariadb", b" -p"), (b"7z", b" -p"), (b"sshpass", b"-p"),
    (b" login", b" -p"), (b" login", b"--pass"), (b"-cli", b" -a"), (b"-cli", b"--pass"),
    (b"mongo", b" -p"), (b"mongo", b"--pass"), (b"sqlcmd", b" -P"), (b"bcp", b" -P"),
    (b"zip", b" -P"), (b"ldap", b" -w"), (b"twine", b" -p"), (b"svn", b"--pass"),
    (b"wget", b"password"), (b"hg ", b"--pass"), (b"twine", b"--pass"), (b"gh ", b" -b"),
    (b"gh ", b"--body"), (b"aws configure", b"aws_s"), (b"openssl", b"pass:"), (b"htpasswd", b" -"),
    (b"smbclient", b" -U"), (b"rpcclient", b" -U"), (b"mount.cifs", b" -U"), (b"svn", b" -p"),
    (b"poetry config", b"http-basic"), (b"password-stdin", b"echo"), (b"password-stdin", b"printf"),
    (b"wget", b" -p"), (b"hg ", b" -p"), (b"chpasswd", b"echo"), (b"chpasswd", b"printf"),
    (b"sudo -", b"echo"), (b"sudo -", b"printf"), (b"auth=(", b","), (b"auth = (", b","),
    (b"login ", b" password "), (b"user ", b" password "), (b"account ", b" password "),
    (b"auth =(", b","), (b"auth= (", b","), (b"BasicAuth(", b","),
    (b"http", b" -a"), (b"http", b" --auth"), (b"xh", b" -a"), (b"xh", b" --auth"),
    (b"net use", b"\\\\"), (b"mc ", b" http"), (b"rabbitmqctl", b"_"), (b"lftp", b" -u"),
    (b"keyvault", b" --value"), (b" as ", b"pass"), (b" as ", b"pwd"),
)  # fmt: skip
"""Programs that take a password, and the option before it."""
_NEAR = (
    *_PASSWORDS, b"clave", b"secret ", b"secret\t", b"creds", b"credentials", b"login", b"log in",
    b"login(", b"log_in(", b"logon(", b"log_on(", b"signin(", b"sign_in(", b"auth(",
    b"authenticat", b"credential", b"connect(", b"connection(", b"pdo(", b"net user",
)  # fmt: skip
"""Words near which a password may stand, without any sign."""
_PROSE_WORDS = (
    *(b"secret", b"token", b"key", *_PASSWORDS),
    *(b"clave", b"recovery code", b"backup code"),
)
_KEYS = tuple(
    b"""
    api access auth private secret encrypt encryption signing account master service shared
    subscription license storage deploy app application admin jwt hmac aes crypto webhook session
    consumer integration function root
    """.split()
)
"""What stands before ``key`` in the name of a secret."""
_VERBS = frozenset(
    b"is was are for to of on in from de du do da del della der von para ist lautet est es set"
    b" still - -> \xe2\x80\x93 \xe2\x80\x94 \xe2\x86\x92 \xc3\xa8 \xc3\xa9 f\xc3\xbcr".split()
)
_GIVING = tuple(bytes((sign,)) for sign in b":=!?|>{" + bytes(range(0x80, 0x100)))
_ESCAPED = tuple(b"\\u00%d" % number for number in range(2, 8))
_IDS = (
    b'"session_id"',
    b'"sessionId"',
    b'"tool_use_id"',
    b'"transcript_path"',
    b'"prompt_id"',
    b'"turn_id"',
)


def _read_table() -> tuple[dict[int, frozenset[int]], list[tuple[bytes, bytes, bytes]]]:
    """Read the classes of bytes by their letter, and the openings by their fixed part.

    The rest of an opening is parsed only where its fixed part occurs: a hook reads this each time.
    """
    with open(os.path.join(os.path.dirname(__file__), "secret_prefilter.tsv"), "rb") as file:
        _, classes, openings = file.read().split(b"\n\n")
    return (
        {line[0]: frozenset(line[2:]) for line in classes.splitlines()},
        [line.partition(b"\t") for line in openings.splitlines()],
    )


_CLASSES, _OPENINGS = _read_table()


def may_hold_secret(text: bytes) -> bool:
    """Return True if a text needs a full scan for secrets."""
    if len(text) > MOST_BYTES or any(each in text for each in _ESCAPED):
        return True  # letters written as numbers: what they say is for a reader of JSON
    text = _without_ids(text)
    texts = [unveil(text)[0]] if is_veiled(text) else [text]
    if b"\x1b]" in text or b"u001b]" in text.lower():
        texts.append(text)  # titles and links of a terminal hold words of their own
    return any(
        _has_opening(each) or _is_other_carrier(each) or _has_named(each, each.lower())
        for each in texts
    )


def _without_ids(text: bytes) -> bytes:
    """The text without the ids that every event carries: they are random, and no secrets."""
    for name in _IDS:
        start = text.find(name)
        if start < 0:
            continue
        first = text.find(b'"', start + len(name))
        end = text.find(b'"', first + 1)
        if 0 < first <= start + len(name) + 3 and 8 <= end - first <= 400:
            text = text.replace(text[first + 1 : end], b".")
    return text


def _places(text: bytes, part: bytes) -> list[int]:
    places = []
    at = text.find(part)
    while at >= 0:
        places.append(at)
        at = text.find(part, at + 1)
    return places


def _has_opening(text: bytes) -> bool:
    for literal, _, rest in _OPENINGS:
        if literal not in text:
            continue
        number, bounded, places = rest.split(b"\t")
        before = int(number)
        for at in _places(text, literal):
            end = at + len(literal)
            around = text[max(0, at - before) : at] + text[end : end + len(places) - before]
            if (
                len(around) == len(places)
                and all(byte in _CLASSES[each] for byte, each in zip(around, places, strict=True))
                and (bounded == b"0" or _begins(text, at - before))
            ):
                return True
    return False


def _begins(text: bytes, start: int) -> bool:
    """Whether a word may begin here: after anything but a letter or digit, or after an escape that
    ends in one.
    """
    if start == 0 or text[start - 1] not in _WORD or text[start] not in _WORD:
        return True
    before = text[max(0, start - 16) : start]
    return (
        before[-2:-1] == b"\\"
        or before[-3:-2] == b"%"
        or before[-6:-4] == b"\\u"
        or b"\x1b[" in before
        or (b"u001b[" in before)
    )


def _is_other_carrier(text: bytes) -> bool:
    """What is known by what carries it: addresses with a name in them, and lines of files."""
    if b":5432:" in text or (b"curl" in text and (b" -u" in text or b"--user" in text)):
        return True
    if any(program in text and option in text for program, option in _COMMANDS):
        return True
    if any(sign in text for sign in (b"%3A%2F%2F", b"%3a%2f%2f", b"%3A%2f%2f", b"%3a%2F%2F")):
        return True
    if any(
        (option.startswith(b"-") and b":" in line[:80])
        or any(each in line for each in (b" -p", b" -P", b" -w", b" -A", b" /p", b" /rp", b"-pass"))
        for option in (
            b" -u",
            b" -U",
            b"-user",
            b" /u:",
            b" /u ",
            b" /user",
            b" /ru",
            b"-auth",
            b"-cred",
        )
        for at in _places(text, option)
        for line in text[at + len(option) : at + 340].replace(b"\\n", b"\n").split(b"\n")[:1]
    ):
        return True
    bars = _places(text, b"|") + _places(text, b"%7C")
    return any(at >= 15 and text[at - 15 : at].isdigit() for at in bars) or any(
        b"@" in text[at + 3 : at + 260].split(b"/", 1)[0] for at in _places(text, b"://")
    )


def _has_named(text: bytes, lowered: bytes) -> bool:
    """Whether a name of a secret is given something that may be one."""
    if b"authorization" in lowered and b"basic" in lowered:
        return True
    if (
        any(_is_given(text, lowered, word) for word in _PASSWORDS)
        or any(_is_in_prose(lowered, word) for word in _PROSE_WORDS)
        or any(_is_near(text, lowered, word) for word in _NEAR)
        or _is_key_given(text, lowered)
    ):
        return True
    has_cookie = b"cookie" in lowered
    at = seen = 0
    for run in text.translate(_KINDS).split(b" "):
        if len(run) >= 4 and _is_random(run[_escape(text, at) :]):
            seen += 1
            window = lowered[max(0, at - _WINDOW) : at]
            if has_cookie or seen > _MOST_RANDOM or any(name in window for name in _NAMES):
                return True
        at += len(run) + 1
    return False


def _escape(text: bytes, at: int) -> int:
    """How many bytes of a run belong to the escape that it begins with, as in JSON."""
    if at == 0 or text[at - 1] != _BACKSLASH:
        return 0
    return 5 if text[at : at + 1] == b"u" else 1


def _is_random(run: bytes) -> bool:
    """Whether letters and digits, or small letters and capitals, are mixed as in no word; given by
    their kinds.
    """
    if run.isdigit():
        return False
    switches = (
        0
        if run.isalpha()
        else run.count(b"a0") + run.count(b"A0") + run.count(b"0a") + run.count(b"0A")
    )
    if switches >= 2:
        return True
    # Capitals within a word; each is counted twice, since they may overlap.
    return (
        len(run) >= 16
        and switches + 2 * (run.count(b"AaA") + run.count(b"aAA") + run.count(b"0AA")) >= 3
    )


def _is_near(text: bytes, lowered: bytes, word: bytes) -> bool:
    """Return True if something near a word has a digit, odd capitals, or four joined words."""
    return any(
        len(piece) >= 6
        and (
            piece.count(b"-") > 2
            or any(mix in piece.translate(_KINDS) for mix in (b"0", b"AaA", b"aAA"))
        )
        for at in _places(lowered, word)
        # The verb, and what passes something by, are no names.
        if word != b"pass"
        or lowered[at - 1 : at] in (b"_", b"-")
        or lowered[at + 4 : at + 5] in b"wpco:"
        for piece in text[max(0, at - 110) : at + 340]
        .translate(bytes.maketrans(b"\"'`,()[]{}<>\\", b" " * 13))
        .split()
    )


def _is_given(text: bytes, lowered: bytes, word: bytes) -> bool:
    """Return True if a word for a password is assigned, or passed with, what may be one."""
    if not word.isalpha():
        return word in lowered  # of another language: rare enough to be looked at
    for at in _places(lowered, word):
        end = at + len(word)
        follow = lowered[end : end + 2]
        if (
            word == b"pass"
            and follow[:1].isalpha()
            and follow[0] not in b"wcpo"
            and follow != b"e "
        ):
            continue  # passed, passes, passing
        limit = end + 24
        while (
            end < len(lowered) and end < limit and (lowered[end] in _WORD or lowered[end] in b"_.-")
        ):
            end += 1
        rest = text[end : end + 200].lstrip(b"\\\"'`*]")
        is_quoted = text[end : end + 200].lstrip(b" ")[:1] in (b"'", b'"')
        blank = rest[:1] in (b" ", b"\t") or rest[:2] == b"\\t"
        rest = rest.lstrip(b" \t")
        head = rest[:40].lower()
        is_given = (
            is_quoted
            or rest[:1] in (*_GIVING, b"<")
            or (rest[:1] in (b",", b"(") and rest[1:].lstrip(b" \\nN")[:1] in (b"'", b'"', b"`"))
            or b"value" in head
            or b"default" in head
            # A name in capitals may hold letters alone, also without a sign.
            or (blank and text[at : at + len(word)].isupper())
        )
        if (is_given and _has_value(rest, is_plain=True)) or (blank and _has_value(rest)):
            return True
    return False


def _is_key_given(text: bytes, lowered: bytes) -> bool:
    """Whether words alone are given to a secret or a key."""
    for word in (b"secret", b"key", b"token"):
        for at in _places(lowered, word):
            end = at + len(word)
            if word == b"key" and not lowered[:at].rstrip(b"_ .-").endswith(_KEYS):
                continue
            is_upper = text[at:end].isupper()
            if is_upper and text[end : end + 1] == b" " and _has_value(text[end : end + 200], True):
                return True
            if word != b"token" or is_upper:
                rest = text[end : end + 200].lstrip(b"\\\"'`*] \t_-." + _LOWER + _UPPER + _DIGITS)
                if rest[:1] in (*_GIVING, b",") and _has_value(rest, is_plain=True):
                    return True
    return False


def _is_in_prose(lowered: bytes, word: bytes) -> bool:
    """Whether a sentence says what it is: "the password for staging is …"."""
    for at in _places(lowered, word):
        rest = lowered[at + len(word) : at + len(word) + 200]
        cut = rest.find(b" ")
        if 0 <= cut <= 24:
            first = rest[cut + 1 :].split(b" ", 1)[0]
            is_quoted = any(sign in rest for sign in (b" '", b' "', b" `", b" *", b' \\"'))
            is_told = is_quoted or first.rstrip(b":") in _VERBS
            if _has_value(rest[cut + 1 :] if is_told else first, is_plain=is_quoted):
                return True
    return False


def _has_value(rest: bytes, is_plain: bool = False) -> bool:
    """Return True if six bytes or more follow that a password may be.

    Unless it may be plain, it has a digit, a sign, joined words, or small and capital letters mixed
    as in no name.
    """
    for piece in rest.replace(b"\\n", b" ").replace(b'"', b" ").replace(b"'", b" ").split()[:12]:
        value = piece.lstrip(b":=!?|>,(\\`*").rstrip(b"\\,;:)]}>`*")
        if len(value) >= 6:
            kinds = value.translate(_KINDS)
            if (
                is_plain
                or any(each in _SIGNS for each in value)
                or any(mix in kinds for mix in (b"0", b"AaA", b"aAA"))
                or max(value.count(joint) for joint in (b"-", b"_", b".")) > 2
            ):
                return True
    return False
