"""Secrets written from public formats and habits before any rule was read.

Each comes with its exact span: 116 vendors' formats, and 179 ways to write down a password or a
key, with plain words, phrases, digits and random signs. The rules were widened after the first
score, so that only that one was blind; `docs/guide/secrets.md` has both.
"""

from __future__ import annotations

import base64
import json
import random
import string

R = random.Random(91173)
A = string.ascii_letters
D = string.digits
AD = A + D
HEX = "0123456789abcdef"
UP = string.ascii_uppercase
LO = string.ascii_lowercase
B32 = UP + "234567"


def r(al, n):
    return "".join(R.choice(al) for _ in range(n))


def b64(n):
    return base64.b64encode(R.randbytes(n)).decode()


def b64u(n):
    return base64.urlsafe_b64encode(R.randbytes(n)).decode().rstrip("=")


def uuid():
    h = r(HEX, 32)
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


def jwt():
    h = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    p = (
        base64.urlsafe_b64encode(json.dumps({"sub": r(D, 10), "iat": 1700000000}).encode())
        .decode()
        .rstrip("=")
    )
    return f"{h}.{p}.{b64u(32)}"


def pem(kind, n=14):
    body = "\n".join(b64(48) for _ in range(n))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


# vendor formats: name -> generator of the secret. Optional carrier with {}.
V = {
    "aws_akid": lambda: "AKIA" + r(B32, 16),
    "aws_asia": lambda: "ASIA" + r(B32, 16),
    "github_pat": lambda: "ghp_" + r(AD, 36),
    "github_oauth": lambda: "gho_" + r(AD, 36),
    "github_server": lambda: "ghs_" + r(AD, 36),
    "github_user": lambda: "ghu_" + r(AD, 36),
    "github_refresh": lambda: "ghr_" + r(AD, 76),
    "github_fine": lambda: "github_pat_" + r(AD, 22) + "_" + r(AD, 59),
    "gitlab_pat": lambda: "glpat-" + r(AD + "_-", 20),
    "gitlab_deploy": lambda: "gldt-" + r(AD, 20),
    "gitlab_runner": lambda: "glrt-" + r(AD, 20),
    "gitlab_ptt": lambda: "glptt-" + r(HEX, 40),
    "gitlab_cbt": lambda: "glcbt-" + r(HEX, 2) + "_" + r(AD, 20),
    "slack_bot": lambda: f"xoxb-{r(D, 12)}-{r(D, 13)}-{r(AD, 24)}",
    "slack_user": lambda: f"xoxp-{r(D, 12)}-{r(D, 12)}-{r(D, 13)}-{r(HEX, 32)}",
    "slack_app": lambda: f"xapp-1-A{r(UP + D, 10)}-{r(D, 13)}-{r(HEX, 64)}",
    "slack_hook": lambda: (
        f"https://hooks.slack.com/services/T{r(UP + D, 8)}/B{r(UP + D, 10)}/{r(AD, 24)}"
    ),
    "stripe_live": lambda: "sk_live_" + r(AD, 24),
    "stripe_rk": lambda: "rk_live_" + r(AD, 99),
    "stripe_whsec": lambda: "whsec_" + r(AD, 32),
    "stripe_test": lambda: "sk_test_" + r(AD, 99),
    "openai_old": lambda: "sk-" + r(AD, 20) + "T3BlbkFJ" + r(AD, 20),
    "openai_proj": lambda: "sk-proj-" + r(AD + "_-", 74) + "T3BlbkFJ" + r(AD + "_-", 74),
    "openai_svc": lambda: "sk-svcacct-" + r(AD + "_-", 74) + "T3BlbkFJ" + r(AD + "_-", 74),
    "anthropic": lambda: "sk-ant-api03-" + r(AD + "_-", 93) + "AA",
    "anthropic_admin": lambda: "sk-ant-admin01-" + r(AD + "_-", 93) + "AA",
    "openrouter": lambda: "sk-or-v1-" + r(HEX, 64),
    "groq": lambda: "gsk_" + r(AD, 52),
    "xai": lambda: "xai-" + r(AD, 80),
    "perplexity": lambda: "pplx-" + r(AD, 48),
    "replicate": lambda: "r8_" + r(AD, 37),
    "huggingface": lambda: "hf_" + r(A, 34),
    "google_api": lambda: "AIza" + r(AD + "_-", 35),
    "google_oauth_secret": lambda: "GOCSPX-" + r(AD + "_-", 28),
    "google_ya29": lambda: "ya29.a0" + r(AD + "_-", 150),
    "google_refresh": lambda: "1//0" + r(AD + "_-", 60),
    "sendgrid": lambda: f"SG.{r(AD + '_-', 22)}.{r(AD + '_-', 43)}",
    "mailgun": lambda: "key-" + r(HEX, 32),
    "mailchimp": lambda: r(HEX, 32) + "-us" + str(R.randint(1, 21)),
    "twilio_key": lambda: "SK" + r(HEX, 32),
    "npm": lambda: "npm_" + r(AD, 36),
    "pypi": lambda: "pypi-AgEIcHlwaS5vcmc" + r(AD + "_-", 150),
    "rubygems": lambda: "rubygems_" + r(HEX, 48),
    "cratesio": lambda: "cio" + r(AD, 32),
    "nuget": lambda: "oy2" + r(LO + D, 43),
    "dockerhub": lambda: "dckr_pat_" + r(AD + "_-", 27),
    "digitalocean": lambda: "dop_v1_" + r(HEX, 64),
    "digitalocean_oauth": lambda: "doo_v1_" + r(HEX, 64),
    "shopify_token": lambda: "shpat_" + r(HEX, 32),
    "shopify_secret": lambda: "shpss_" + r(HEX, 32),
    "square_at": lambda: "EAAA" + r(AD + "_-", 60),
    "square_secret": lambda: "sq0csp-" + r(AD + "_-", 43),
    "telegram": lambda: r("123456789", 1) + r(D, 9) + ":AA" + r(AD + "_-", 33),
    "discord_bot": lambda: "MT" + r(AD, 24) + "." + r(AD + "_-", 6) + "." + r(AD + "_-", 38),
    "discord_hook": lambda: f"https://discord.com/api/webhooks/{r(D, 18)}/{r(AD + '_-', 68)}",
    "databricks": lambda: "dapi" + r(HEX, 32),
    "hashicorp_vault": lambda: "hvs." + r(AD + "_-", 90),
    "vault_batch": lambda: "hvb." + r(AD + "_-", 140),
    "terraform_cloud": lambda: r(AD, 14) + ".atlasv1." + r(AD + "_-", 67),
    "pulumi": lambda: "pul-" + r(HEX, 40),
    "grafana_sa": lambda: "glsa_" + r(AD, 32) + "_" + r(HEX, 8),
    "grafana_cloud": lambda: "glc_" + b64(90).replace("=", ""),
    "newrelic_user": lambda: "NRAK-" + r(UP + D, 27),
    "newrelic_insert": lambda: "NRII-" + r(AD + "-", 32),
    "sentry_user": lambda: "sntryu_" + r(HEX, 64),
    "sentry_org": lambda: "sntrys_eyJ" + r(AD, 120) + "_" + r(AD, 43),
    "linear": lambda: "lin_api_" + r(AD, 40),
    "notion_new": lambda: "ntn_" + r(AD, 46),
    "notion_old": lambda: "secret_" + r(AD, 43),
    "figma": lambda: "figd_" + r(AD + "_-", 40),
    "airtable": lambda: "pat" + r(AD, 14) + "." + r(HEX, 64),
    "atlassian": lambda: "ATATT3xFfGF0" + r(AD + "_-", 170) + "=" + r("0123456789ABCDEF", 8),
    "bitbucket_app": lambda: "ATBB" + r(AD, 24) + r("0123456789ABCDEF", 8),
    "asana": lambda: "1/" + r(D, 16) + ":" + r(HEX, 32),
    "doppler": lambda: "dp.pt." + r(AD, 43),
    "planetscale": lambda: "pscale_tkn_" + r(AD + "_-", 43),
    "planetscale_pw": lambda: "pscale_pw_" + r(AD + "_-", 43),
    "supabase": lambda: "sbp_" + r(HEX, 40),
    "supabase_secret": lambda: "sb_secret_" + r(AD + "_-", 31),
    "flyio": lambda: "fo1_" + r(AD + "_-", 43),
    "fly_macaroon": lambda: "fm2_" + b64(300).rstrip("="),
    "tailscale": lambda: f"tskey-auth-{r(AD, 12)}CNTRL-{r(AD, 32)}",
    "postman": lambda: f"PMAK-{r(HEX, 24)}-{r(HEX, 34)}",
    "age": lambda: "AGE-SECRET-KEY-1" + r("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "jwt": jwt,
    "pem_rsa": lambda: pem("RSA PRIVATE KEY"),
    "pem_ec": lambda: pem("EC PRIVATE KEY", 3),
    "pem_ssh": lambda: pem("OPENSSH PRIVATE KEY", 6),
    "pem_pkcs8": lambda: pem("PRIVATE KEY"),
    "pem_pgp": lambda: pem("PGP PRIVATE KEY BLOCK"),
    "azure_storage": lambda: b64(64),
    "azure_ad": lambda: r(AD, 3) + "8Q~" + r(AD + "_-.~", 34),
    "azure_sas": lambda: r(AD, 20) + "%2B" + r(AD, 20) + "%3D",
    "alibaba": lambda: "LTAI" + r(AD, 20),
    "facebook": lambda: "EAACEdEose0cBA" + r(AD, 120),
    "artifactory": lambda: "AKCp" + r(AD, 69),
    "circleci": lambda: "CCIPAT_" + r(AD, 22) + "_" + r(HEX, 40),
    "buildkite": lambda: "bkua_" + r(HEX, 40),
    "launchdarkly": lambda: "sdk-" + uuid(),
    "dynatrace": lambda: f"dt0c01.{r(UP + D, 24)}.{r(UP + D, 64)}",
    "brevo": lambda: f"xkeysib-{r(HEX, 64)}-{r(AD, 16)}",
    "contentful": lambda: "CFPAT-" + r(AD + "_-", 43),
    "easypost": lambda: "EZAK" + r(HEX, 54),
    "prefect": lambda: "pnu_" + r(AD, 36),
    "readme": lambda: "rdme_" + r(LO + D, 70),
    "typeform": lambda: "tfp_" + r(AD, 44),
    "onepassword": lambda: "ops_eyJ" + r(AD, 250),
    "langsmith": lambda: f"lsv2_pt_{r(HEX, 32)}_{r(HEX, 10)}",
    "tavily": lambda: "tvly-" + r(AD, 32),
    "cloudflare_origin": lambda: f"v1.0-{r(HEX, 24)}-{r(HEX, 146)}",
    "heroku_new": lambda: "HRKU-AA" + r(AD + "_-", 58),
    "render": lambda: "rnd_" + r(AD, 28),
    "resend": lambda: f"re_{r(AD, 8)}_{r(AD, 24)}",
    "neon": lambda: "napi_" + r(LO + D, 64),
    "aiven": lambda: "AVNS_" + r(AD + "_-", 19),
    "mapbox_sk": lambda: "sk.eyJ1Ijoi" + r(AD, 60) + "." + r(AD + "_-", 22),
}
CARRIER = {
    "azure_storage": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=x",
    "azure_sas": "https://acme.blob.core.windows.net/c/f.txt?sv=2022-11-02&sp=r&sig={}",
}
NEUTRAL = [
    "{}",
    "got {} back",
    "I used {} and it answered 200",
    "see {}",
    "> {}",
    "run --with {}",
    "[{}]",
    "'{}'",
    "value: {}",
    "log 12:03:11 {} ok",
]


def vendors(n=5):
    for name, g in V.items():
        for _ in range(n):
            s = g()
            yield name, CARRIER.get(name, R.choice(NEUTRAL)).replace("{}", s), s


# ------------------------------------------------------------- context
WORDS = (
    "orange", "harbor", "candle", "monkey", "thunder", "river", "velvet", "copper", "lantern",
    "meadow", "pirate", "saddle", "glacier", "walnut", "falcon", "tunnel", "marble", "cactus",
    "ribbon", "puzzle",
)  # fmt: skip


def letters():
    return "".join(R.sample(WORDS, R.choice([1, 2])))


def phrase():
    return R.choice(["-", "_", "."]).join(R.sample(WORDS, 4))


def digits():
    return r(D, R.choice([6, 8, 10]))


def mixed():
    w = R.choice(WORDS).title()
    return w + r(D, R.choice([2, 4])) + R.choice(["!", "$", "#", "@", "", "?"])


def rand():
    return r(AD, R.choice([12, 16, 20, 32]))


def sym():
    return r(AD, 5) + R.choice("!%^*+") + r(AD, 5) + R.choice("@$!") + r(AD, 2)


def randlower():
    return r(LO, R.choice([10, 14]))


def hexs():
    return r(HEX, R.choice([32, 40, 64]))


KINDS = {
    "letters": letters,
    "phrase": phrase,
    "digits": digits,
    "mixed": mixed,
    "random": rand,
    "symbols": sym,
    "lower": randlower,
    "hex": hexs,
}


def word(kinds=None):
    k = R.choice(list(kinds or KINDS))
    return k, KINDS[k]()


NOSYM = ["letters", "phrase", "mixed_", "random", "lower", "hex", "digits"]
KINDS["mixed_"] = lambda: R.choice(WORDS).title() + r(D, 4)
C = {
    # env / ini / properties
    "env_password": "DB_PASSWORD={}",
    "env_export": "export PGPASSWORD={}",
    "env_quoted": 'MYSQL_ROOT_PASSWORD="{}"',
    "env_secret_key": "SECRET_KEY={}",
    "env_api_key": "WEATHER_API_KEY={}",
    "env_token": "CI_DEPLOY_TOKEN='{}'",
    "env_pass": "SMTP_PASS={}",
    "env_pwd": "REDIS_PWD={}",
    "env_passphrase": "GPG_PASSPHRASE={}",
    "env_aws_secret": "AWS_SECRET_ACCESS_KEY={}",
    "env_jwt": "JWT_SECRET={}",
    "env_client": "OAUTH_CLIENT_SECRET={}",
    "ini": "[mail]\nuser = bob\npassword = {}\n",
    "properties": "spring.datasource.password={}",
    "netrc": "machine api.acme.io login bob password {}",
    "pgpass": "db.acme.io:5432:shop:bob:{}",
    "npmrc": "//registry.acme.io/:_authToken={}",
    "pypirc": "[pypi]\nusername = bob\npassword: {}",
    "mycnf": "[client]\nuser=root\npassword={}",
    # yaml/json/toml/xml
    "yaml": "database:\n  host: db\n  password: {}\n",
    "yaml_q": 'redis:\n  auth_password: "{}"\n',
    "json": '{"user": "bob", "password": "{}"}',
    "json_camel": '{"clientSecret":"{}","ttl":30}',
    "json_api": '  "api_key": "{}",',
    "toml": '[auth]\nsecret = "{}"',
    "toml_token": 'access_token = "{}"',
    "xml_el": "<password>{}</password>",
    "xml_attr": '<user name="bob" password="{}"/>',
    "appsettings": '"ConnectionStrings": {"Db": "Server=db;User Id=sa;Password={};Encrypt=true"}',
    "plist": "<key>password</key><string>{}</string>",
    # docker/k8s
    "docker_e": "docker run -e POSTGRES_PASSWORD={} -p 5432:5432 postgres",
    "docker_env": "ENV ADMIN_PASSWORD {}",
    "docker_arg": "ARG NPM_TOKEN={}",
    "docker_login": "docker login -u bob -p {} registry.acme.io",
    "compose": "    environment:\n      - RABBITMQ_DEFAULT_PASS={}",
    "k8s_stringdata": "kind: Secret\nstringData:\n  password: {}\n",
    "k8s_env": "- name: DB_PASSWORD\n  value: {}\n",
    "k8s_create": "kubectl create secret generic db --from-literal=password={}",
    "helm": "helm install db bitnami/postgresql --set auth.postgresPassword={}",
    # connection strings
    "dsn_pg": "postgres://bob:{}@db.acme.io:5432/shop",
    "dsn_mysql": "mysql+pymysql://root:{}@127.0.0.1/app",
    "dsn_mongo": "mongodb+srv://bob:{}@cluster0.acme.net/test",
    "dsn_redis": "redis://:{}@cache:6379/0",
    "dsn_amqp": "amqp://svc:{}@mq//",
    "https_userinfo": "git clone https://bob:{}@git.acme.io/x/y.git",
    "libpq": "host=db user=bob password={} dbname=shop",
    "jdbc": "jdbc:mysql://db/shop?user=bob&password={}",
    "odbc": "Driver=ODBC;Server=db;UID=sa;PWD={};",
    "url_query_key": "https://api.acme.io/v1/x?api_key={}&page=2",
    "url_query_token": "GET /cb?access_token={} HTTP/1.1",
    # chat
    "chat_is": "the password is {}",
    "chat_for": "The admin password for staging is {}, please keep it",
    "chat_use": "log in as admin with password {}",
    "chat_pw": "pw: {}",
    "chat_creds": "credentials: admin / {}",
    "chat_changed": "I changed the root password to {} yesterday",
    "chat_my": "my api key is {}",
    "chat_token": "here is the token: {}",
    "chat_login": "Login: bob, Password: {}",
    "chat_passcode": "The passcode is {}",
    "chat_user_pass": "user bob, pass {}",
    "chat_backtick": "password is `{}`",
    "chat_set": "set the password to '{}'",
    "chat_wifi": "wifi password: {}",
    # languages
    "de": "Das Passwort lautet {}",
    "de2": "Kennwort: {}",
    "fr": "le mot de passe est {}",
    "fr2": "mot de passe : {}",
    "es": "la contraseña es {}",
    "es2": "contraseña: {}",
    "it": "la password è {}",
    "pt": "a senha é {}",
    "pt2": "senha={}",
    "nl": "het wachtwoord is {}",
    "pl": "hasło: {}",
    "ru": "пароль: {}",
    "ru2": "пароль от базы {}",
    "cs": "heslo: {}",
    "sv": "lösenord: {}",
    "tr": "şifre: {}",
    "ja": "パスワード: {}",
    "ja2": "パスワードは{}です",
    "zh": "密码：{}",
    "zh2": "密码是 {}",
    "ko": "비밀번호: {}",
    "da": "adgangskode: {}",
    "fi": "salasana: {}",
    "uk": "пароль — {}",
    # SQL
    "sql_pg": "CREATE USER bob WITH PASSWORD '{}';",
    "sql_alter": "ALTER ROLE bob PASSWORD '{}'",
    "sql_mysql": "CREATE USER 'bob'@'%' IDENTIFIED BY '{}';",
    "sql_set": "SET PASSWORD FOR 'bob'@'%' = '{}';",
    "sql_insert": "INSERT INTO users (name, password) VALUES ('bob', '{}');",
    "sql_update": "UPDATE users SET password='{}' WHERE id=1",
    "sql_login": "CREATE LOGIN bob WITH PASSWORD = N'{}'",
    # CLI
    "cli_long": "mytool login --user bob --password {}",
    "cli_eq": "mytool --api-key={}",
    "cli_token": "vault login --token {}",
    "cli_mysql": "mysql -u root -p{} shop",
    "cli_curl_u": "curl -u bob:{} https://api.acme.io/v1",
    "cli_sshpass": "sshpass -p {} ssh bob@host",
    "cli_redis": "redis-cli -h cache -a {} ping",
    "cli_echo": "echo {} | docker login -u bob --password-stdin",
    "cli_sudo": "echo '{}' | sudo -S apt update",
    "cli_env": "PGPASSWORD={} psql -h db -U bob",
    "cli_htpasswd": "htpasswd -cb .htpasswd bob {}",
    "cli_openssl": "openssl rsa -in k.pem -passin pass:{}",
    "cli_mongo": "mongosh -u bob -p {} --authenticationDatabase admin",
    "cli_chpasswd": "echo 'bob:{}' | chpasswd",
    "cli_az": "az login --service-principal -u app -p {} --tenant t",
    "cli_net": "net user bob {} /add",
    "cli_gh": "gh secret set DEPLOY_KEY --body {}",
    "cli_psw": "sqlcmd -S db -U sa -P {}",
    "cli_zip": "7z x a.7z -p{}",
    # HTTP
    "http_bearer": "Authorization: Bearer {}",
    "http_xapi": "X-Api-Key: {}",
    "http_curl_h": "curl -H 'X-Auth-Token: {}' https://api.acme.io",
    "http_private": "PRIVATE-TOKEN: {}",
    "http_form": "grant_type=password&username=bob&password={}",
    "http_cookie": "Cookie: sessionid={}; theme=dark",
    "http_token": "Authorization: token {}",
    # CI / logs
    "log_kv": "2024-05-01 12:00:01 INFO login user=bob password={} ok",
    "log_json": '{"level":"debug","msg":"auth","passwd":"{}"}',
    "log_generated": "A temporary password is generated for root@localhost: {}",
    "log_initial": "Initial admin password: {}",
    "log_gen2": "Generated password for user elastic: {}",
    "log_argo": "Please use the following password to proceed to installation:\n\n{}\n",
    "gha_env": "      env:\n        API_TOKEN: {}",
    "gitlab_ci": 'variables:\n  DEPLOY_PASSWORD: "{}"',
    # terraform / ansible
    "tf": '  master_password = "{}"',
    "tf_var": 'terraform apply -var "db_password={}"',
    "tf_tfvars": 'admin_secret = "{}"',
    "tf_default": 'variable "db_password" {\n  default = "{}"\n}',
    "ansible": "ansible_ssh_pass: {}",
    "ansible_become": "web1 ansible_host=10.0.0.4 ansible_become_password={}",
    # code
    "py": 'password = "{}"',
    "py_kw": "connect(host='db', user='bob', password='{}')",
    "py_dict": "cfg['password'] = '{}'",
    "py_environ": 'os.environ["API_SECRET"] = "{}"',
    "py_getenv": "os.getenv('DB_PASSWORD', '{}')",
    "py_typed": 'api_key: str = "{}"',
    "py_auth": "requests.get(url, auth=('bob', '{}'))",
    "py_cmp": "if password == '{}':",
    "js": "const password = '{}';",
    "js_obj": "  apiKey: '{}',",
    "js_env": "process.env.DB_PASSWORD || '{}'",
    "js_tpl": "let token = `{}`;",
    "ts": 'private readonly secret: string = "{}";',
    "java": 'String dbPassword = "{}";',
    "java_setter": 'ds.setPassword("{}");',
    "java_final": 'private static final String API_KEY = "{}";',
    "go": 'password := "{}"',
    "go_struct": 'Password: "{}",',
    "go_const": 'const apiToken = "{}"',
    "rust": 'let password = "{}";',
    "rust_const": 'const API_KEY: &str = "{}";',
    "csharp": 'var password = "{}";',
    "csharp_prop": 'public string ApiKey { get; set; } = "{}";',
    "ruby": "password: '{}',",
    "ruby_hash": ":password => '{}'",
    "php": "$password = '{}';",
    "php_define": "define('DB_PASSWORD', '{}');",
    "php_arr": "'password' => '{}',",
    "c_define": '#define WIFI_PASSWORD "{}"',
    "c_const": 'const char *password = "{}";',
    "kotlin": 'val apiSecret = "{}"',
    "swift": 'let apiKey = "{}"',
    "powershell": "$Password = '{}'",
    "ps_secure": 'ConvertTo-SecureString "{}" -AsPlainText -Force',
    "lua": "local password = '{}'",
    "elixir": 'config :app, Repo, password: "{}"',
    "wp": "define( 'AUTH_KEY', '{}' );",
    "expect": 'send "{}\\r" # password',
    "table_md": "| admin | password | {} |",
    "basic_hdr": "Authorization: Basic {}",
    "totp": "otpauth://totp/acme:bob?secret={}&issuer=acme",
    "private_key_hex": "PRIVATE_KEY=0x{}",
    "salt": "ENCRYPTION_KEY: {}",
    "webhook": "WEBHOOK_SIGNING_SECRET={}",
}
# kinds that make sense for a context
TOKENISH = ["random", "hex"]
ONLY = {
    "http_bearer": TOKENISH,
    "http_cookie": TOKENISH,
    "http_token": TOKENISH,
    "totp": ["b32"],
    "private_key_hex": ["hex64"],
    "basic_hdr": ["basic"],
    "env_aws_secret": ["aws40"],
    "url_query_key": TOKENISH,
    "url_query_token": TOKENISH,
    "env_api_key": TOKENISH,
    "env_token": TOKENISH,
    "cli_token": TOKENISH,
    "http_xapi": TOKENISH,
    "http_curl_h": TOKENISH,
    "http_private": TOKENISH,
    "npmrc": TOKENISH,
    "docker_arg": TOKENISH,
    "chat_my": TOKENISH,
    "chat_token": TOKENISH,
    "cli_eq": TOKENISH,
    "json_api": TOKENISH,
    "toml_token": TOKENISH,
}
KINDS |= {
    "b32": lambda: r(B32, 32),
    "hex64": lambda: r(HEX, 64),
    "basic": lambda: base64.b64encode(f"bob:{mixed()}".encode()).decode(),
    "aws40": lambda: b64(30),
}
URLSAFE = {c for c in C if c.startswith(("dsn", "https", "url", "jdbc", "http_form", "cli_"))} | {
    "tf_var"
}
GEN = ["letters", "phrase", "digits", "mixed", "random", "symbols", "lower", "hex"]


def contexts(n=10):
    for name, tpl in C.items():
        ks = ONLY.get(name) or (NOSYM if name in URLSAFE else GEN)
        for i in range(n):
            k = ks[i % len(ks)]
            s = KINDS[k]()
            yield name, k, tpl.replace("{}", s), s
