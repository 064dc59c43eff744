"""Credentials known by their surroundings, in ways and shapes that the other corpora do not have.

A value is judged by what it is made of: words with a digit inside, leet, keyboard walks, groups of
a recovery code, words that also stand in examples. Every second way of writing is held back: the
rules were widened with the others alone in view.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

WORDS = (
    "anchor", "basalt", "bishop", "cobalt", "dragon", "ember", "fjord", "garnet", "hunter",
    "indigo", "jasper", "kettle", "lobster", "mango", "nectar", "otter", "pebble", "quartz",
    "raven", "saffron", "timber", "urchin", "violet", "willow", "yonder", "zephyr",
)  # fmt: skip
FAMILIAR = ("secret", "test", "default", "change", "sample", "your")
WALKS = ("qwe789rty", "asd456fgh", "zaq12wsx", "1q2w3e4r5t", "qazxsw23edc")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SIGNS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def values(dice: random.Random) -> dict[str, str]:
    """One value of each kind."""
    one, two, three = dice.sample(WORDS, 3)
    leet = str.maketrans("aeio", "4310")
    return {
        "digit inside": f"{one}{dice.randrange(10)}{two}",
        "familiar word": f"{one}{dice.randrange(10)}{dice.choice(FAMILIAR)}",
        "leet": f"{one.title()}-{two.translate(leet)}{dice.randrange(10)}",
        "camel": f"{one.title()}{two.title()}{dice.randrange(10)}{three.title()}",
        "season": f"{one.title()}-{dice.randrange(1990, 2030)}*",
        "walk": dice.choice(WALKS),
        "groups": "-".join("".join(dice.choices(_SIGNS, k=4)) for _ in range(3)),
        "base58": "".join(dice.choices(_BASE58, k=22)),
        "hex": "".join(dice.choices("0123456789abcdef", k=24)),
        "signs": "".join(dice.choices(_LETTERS + "#%^*_+=~", k=9)) + str(dice.randrange(10, 99)),
    }


PLAIN = ("digit inside", "familiar word", "leet", "camel", "season", "walk")
RANDOM = ("groups", "base58", "hex")

WAYS: dict[str, str] = {
    # notes and chats
    "colon": "password: {}",
    "said": "the password: {}, ok?",
    "for now": "use password {} for now",
    "as": "try {} as the password",
    "possessive": "root's password: {}",
    "apostrophe": "login is ann and the password's {}",
    "box": "Creds for the staging box - user deploy, password {}",
    "short": "PW {} (expires Friday)",
    "arrow": "password → {}",
    "bold": "**Password**: {}",
    "bullet": "- Password: `{}`",
    "cell": "| password | {} |",
    "below": "Password:\n{}\n",
    "slash": "user/pass: deploy/{}",
    "dash": "db password - {}",
    "works": "password {} works on staging, not on prod",
    "reset": "I reset ann's password to {} this morning",
    "still": "Is the password still {}?",
    "with": "ssh in as deploy with passphrase {}",
    "parens": "the vault (passphrase: {}) is on the share",
    # settings
    "env pw": "set ADMIN_PW={}",
    "env pass": "$env:SHOP_PASS = '{}'",
    "setx": "setx SHOP_SECRET {}",
    "mail": "MAIL_PASSWD: {}",
    "yaml camel": "  dbPassword: {}",
    "yaml dash": "  admin-password: '{}'",
    "yaml list": "    - password={}",
    "rcon": "rcon.password={}",
    "commented": "# old db_password={}",
    "ini space": "passwd   =   {}",
    "toml": 'smtp_pass = "{}"',
    "json pwd": '{"host":"db","pwd":"{}"}',
    "json nested": '{"auth":{"user":"ann","pass":"{}"}}',
    "json twice": '{\\"user\\":\\"ann\\",\\"password\\":\\"{}\\"}',
    "xml": '<add key="SmtpPassword" value="{}" />',
    "compose": "  POSTGRES_PASSWORD: {}",
    "hcl": 'password = "{}" # rotate',
    "conn": "Server=db;Uid=ann;Pwd={};Pooling=true",
    "ldif": "userPassword: {}",
    "wpa": 'psk="{}"',
    # commands
    "pass eq": "backup --user ann --pass={}",
    "storepass": "keytool -list -keystore a.jks -storepass {}",
    "net use": r"net use Z: \\srv\share {} /user:ann",
    "become": "ansible all -m ping -e ansible_become_pass={}",
    "data": "curl -d 'user=ann&password={}' https://shop.io/login",
    "cmdkey": "cmdkey /add:srv /user:ann /pass:{}",
    "mc": "mc alias set store https://s3.shop.io ann {}",
    "rabbit": "rabbitmqctl add_user ann {}",
    "vault": "vault kv put secret/db password={}",
    "tfvar": "terraform plan -var=db_password={}",
    "createuser": "mysql -e \"CREATE USER 'ann' IDENTIFIED BY '{}'\"",
    "psql": 'psql "host=db user=ann password={}"',
    "restic": "RESTIC_PASSWORD={} restic snapshots",
    "lftp": "lftp -u ann,{} ftp.shop.io",
    "userflag": "http -a ann:{} shop.io/api",
    # addresses and headers
    "ftp": "ftp://ann:{}@ftp.shop.io/x",
    "smtp": "smtp://ann:{}@mail.shop.io:587",
    "query": "https://shop.io/login?user=ann&pass={}",
    "form": "username=ann&passwd={}&submit=1",
    # code
    "kw": 'connect("db", "ann", password="{}")',
    "const": "const pw = '{}';",
    "typed": 'val password: String = "{}"',
    "objc": 'NSString *password = @"{}";',
    "ruby": ':password => "{}"',
    "go field": '\tPassword:  "{}",',
    "with method": '.withPassword("{}")',
    "map": 'conf.put("password", "{}");',
    "environ": 'os.environ["SHOP_PASS"] = "{}"',
    "default arg": 'def login(user, password="{}"):',
    "tuple": '("ann", "password", "{}")',
    "assert": 'assert login("ann", password="{}") is True',
    "perl": "my $passwd = '{}';",
    # other languages
    "de server": "Das Passwort für den Server: {}",
    "de creds": "Zugangsdaten: Benutzer ann, Kennwort {}",
    "de new": "Neues Passwort ist {}",
    "fr server": "le mot de passe du serveur : {}",
    "fr short": "mdp : {}",
    "fr user": "identifiant ann, mot de passe {}",
    "es prod": "contraseña de producción: {}",
    "es key": "la clave de acceso es {}",
    "pt db": "a senha do banco é {}",
    "pt wifi": "senha do wifi: {}",
    "zh db": "数据库密码：{}",
    "zh as": "密码为{}",
    "zh new": "新密码是 {}",
    "it server": "la password del server: {}",
    "it new": "nuova password {}",
}
KEYS: dict[str, str] = {
    "secret key": "the secret key: {}",
    "api is": "our api key is {}",
    "token colon": "token: {}",
    "token eq": "export SHOP_TOKEN={}",
    "key base": "secret_key_base: {}",
    "client": "--client-secret={}",
    "secret opt": "deploy --secret {}",
    "vault header": "X-Vault-Token: {}",
    "apikey header": "apikey: {}",
    "auth apikey": "Authorization: ApiKey {}",
    "shop header": "X-Shopify-Access-Token: {}",
    "fragment": "https://shop.io/cb#access_token={}&state=1",
    "refresh": '{"refresh_token":"{}"}',
    "client kw": 'client = Client(api_key="{}")',
    "rust": 'let token: &str = "{}";',
    "kv set": "az keyvault secret set --name db --value {}",
    "signing": "WEBHOOK_SIGNING_KEY={}",
    "encryption": "encryption_key: '{}'",
    "recovery": "recovery code: {}",
    "bearer": "-H 'Authorization: Bearer {}'",
    "de key": "der API-Schlüssel lautet {}",
    "fr key": "la clé API est {}",
    "es token": "el token de acceso es {}",
    "zh key": "密钥：{}",
}


def samples(seed: int, is_held_back: bool) -> Iterator[tuple[str, str, str]]:
    """Every way with every kind of value that it may hold: its name, the text, the secret."""
    dice = random.Random(seed)
    for ways, kinds in ((WAYS, None), (KEYS, RANDOM)):
        for number, (name, way) in enumerate(ways.items()):
            for kind, value in values(dice).items():
                if (number % 2 == 1) is is_held_back and (kinds is None or kind in kinds):
                    if kind == "signs" and "://" in way:
                        continue
                    yield f"{name}, {kind}", way.replace("{}", value), value
