"""Random secrets in the vendors' formats, written down apart from the rules, and the texts that
carry them.

In a format `<A36>` stands for 36 random letters and digits; the other letters
are explained in `ALPHABETS`. `<u>` is a random UUID.
"""

from __future__ import annotations

import json
import random
import re
import string
import uuid

DIGITS, LOWER, UPPER = string.digits, string.ascii_lowercase, string.ascii_uppercase
ALPHABETS = {
    "A": LOWER + UPPER + DIGITS,
    "h": "0123456789abcdef",
    "l": LOWER + DIGITS,
    "U": UPPER + DIGITS,
    "d": DIGITS,
    "w": LOWER + UPPER + DIGITS + "_-",
    "b": LOWER + UPPER + DIGITS + "+/",
    "L": LOWER + UPPER,
    "a": LOWER,
}

FORMATS: dict[str, str] = {
    "github-personal": "ghp_<A36>",
    "github-oauth": "gho_<A36>",
    "github-user-to-server": "ghu_<A36>",
    "github-app": "ghs_<A36>",
    "github-refresh": "ghr_<A76>",
    "github-fine-grained": "github_pat_<A22>_<A59>",
    "gitlab-personal": "glpat-<w20>",
    "gitlab-deploy": "gldt-<w20>",
    "gitlab-trigger": "glptt-<h40>",
    "gitlab-runner": "glrt-<w20>",
    "gitlab-runner-registration": "GR1348941<w20>",
    "gitlab-job": "glcbt-<A5>_<w20>",
    "gitlab-feed": "glft-<w20>",
    "gitlab-incoming-mail": "glimt-<w25>",
    "gitlab-agent": "glagent-<w50>",
    "gitlab-scim": "glsoat-<w20>",
    "gitlab-oauth": "gloas-<h64>",
    "gitlab-feature-flag": "glffct-<w20>",
    "gitlab-workspace": "glwt-<w20>",
    "bitbucket-app-password": "ATBB<A32>",
    "atlassian-api": "ATATT3xFfGF0<w171>=<U8>",
    "atlassian-access": "ATCTT3xFfGN0<w150>=<U8>",
    "trello-token": "ATTA<h72>",
    "npm-token": "npm_<A36>",
    "pypi-token": "pypi-AgEIcHlwaS5vcmc<w150>",
    "rubygems-key": "rubygems_<h48>",
    "nuget-key": "oy2<l43>",
    "crates-token": "cio<A32>",
    "clojars-token": "CLOJARS_<h60>",
    "docker-personal": "dckr_pat_<w27>",
    "docker-organization": "dckr_oat_<w32>",
    "sourcegraph-token": "sgp_<h16>_<h40>",
    "sonar-token": "squ_<h40>",
    "buildkite-token": "bkua_<h40>",
    "circleci-personal": "CCIPAT_<A22>_<h40>",
    "circleci-project": "CCIPRJ_<A22>_<h40>",
    "octopus-key": "API-<U26>",
    "artifactory-key": "AKCp<A69>",
    "artifactory-reference": "cmVmdGtuOjAxOj<A56>",
    "snyk-token": "snyk_uat.<h8>.<w40>",
    "aws-access-key": "AKIA<U16>",
    "aws-bedrock-key": "ABSK<b120>",
    "google-api-key": "AIza<w35>",
    "google-client-secret": "GOCSPX-<w28>",
    "google-access-token": "ya29.a0<w150>",
    "google-refresh-token": "1//0<w98>",
    "azure-client-secret": "<A3>8Q~<w34>",
    "azure-storage-key": "AccountName=store;AccountKey=<<b86>==>;EndpointSuffix=core.windows.net",
    "azure-storage-key-marked": "<b76>+ASt<b6>==",
    "azure-shared-access-key": "SharedAccessKeyName=Root;SharedAccessKey=<<b43>=>",
    "azure-sas-signature": "https://a.blob.core.windows.net/c?sv=2022-11-02&sig=<<A40>%2B<A2>%3D>",
    "azure-devops-token": "<A76>AZDO<A4>",
    "azure-function-key": "<w44>AzFu<w8>==",
    "azure-ai-key": "<A52>JQQJ99<A26>",
    "alibaba-access-key": "LTAI<A20>",
    "tencent-secret-id": "AKID<A32>",
    "yandex-api-key": "AQVN<w36>",
    "yandex-iam-token": "t1.<w60>.<w86>",
    "digitalocean-personal": "dop_v1_<h64>",
    "digitalocean-oauth": "doo_v1_<h64>",
    "digitalocean-refresh": "dor_v1_<h64>",
    "cloudflare-origin-ca": "v1.0-<h24>-<h146>",
    "heroku-key": "HRKU-AA<w58>",
    "netlify-token": "nfp_<A36>",
    "vercel-blob": "vercel_blob_rw_<A16>_<A30>",
    "vercel-token": "vcp_<A56>",
    "fly-token": "FlyV1 fm2_<b200>",
    "fly-macaroon": "fm2_<b200>",
    "fly-oauth": "fo1_<w43>",
    "render-key": "rnd_<A28>",
    "scalingo-token": "tk-us-<w48>",
    "deno-token": "ddp_<A36>",
    "tailscale-key": "tskey-auth-<A12>CNTRL-<A32>",
    "openshift-token": "sha256~<w43>",
    "vault-service": "hvs.<w90>",
    "vault-batch": "hvb.<w140>",
    "vault-recovery": "hvr.<w40>",
    "terraform-token": "<A14>.atlasv1.<A67>",
    "pulumi-token": "pul-<h40>",
    "doppler-token": "dp.pt.<A43>",
    "infracost-key": "ico-<A32>",
    "harness-token": "pat.<A22>.<h24>.<A20>",
    "defined-networking": "dnkey-<l26>-<l52>",
    "prefect-key": "pnu_<l36>",
    "launchdarkly-key": "sdk-<u>",
    "onepassword-service-account": "ops_eyJ<b250>",
    "onepassword-secret-key": "A3-<U6>-<U6>-<U5>-<U5>-<U5>-<U5>",
    "age-secret-key": "AGE-SECRET-KEY-1<U58>",
    "cockroach-key": "CCDB1_<A22>_<A40>",
    "confluent-key": "cflt<b60>",
    "anthropic-key": "sk-ant-api03-<w93>AA",
    "anthropic-admin-key": "sk-ant-admin01-<w93>AA",
    "openai-project-key": "sk-proj-<w74>T3BlbkFJ<w74>",
    "openai-service-key": "sk-svcacct-<w74>T3BlbkFJ<w74>",
    "openai-admin-key": "sk-admin-<w58>T3BlbkFJ<w58>",
    "openai-legacy-key": "sk-<A20>T3BlbkFJ<A20>",
    "openrouter-key": "sk-or-v1-<h64>",
    "langfuse-key": "sk-lf-<u>",
    "huggingface-user": "hf_<L34>",
    "huggingface-organization": "api_org_<L34>",
    "replicate-token": "r8_<A37>",
    "groq-key": "gsk_<A52>",
    "perplexity-key": "pplx-<A48>",
    "xai-key": "xai-<A80>",
    "cerebras-key": "csk-<l48>",
    "nvidia-key": "nvapi-<w64>",
    "fireworks-key": "fw_<A24>",
    "together-key": "tgp_v1_<w43>",
    "tavily-key": "tvly-dev-<A32>",
    "voyage-key": "pa-<w43>",
    "jina-key": "jina_<h32><A28>",
    "pinecone-key": "pcsk_<A5>_<A60>",
    "langsmith-key": "lsv2_pt_<h32>_<h10>",
    "wandb-key": "wandb_v1_<A80>",
    "elevenlabs-key": "sk_<h48>",
    "slack-bot": "xoxb-<d12>-<d12>-<A24>",
    "slack-user": "xoxp-<d12>-<d12>-<d12>-<h32>",
    "slack-workspace": "xoxa-<d12>-<A24>",
    "slack-configuration": "xoxe.xoxp-1-<A140>",
    "slack-cookie": "xoxd-<A80>%2B<A20>",
    "slack-app": "xapp-1-<U11>-<d13>-<h64>",
    "slack-webhook": "https://hooks.slack.com/services/<T<U8>/B<U8>/<A24>>",
    "discord-webhook": "https://discord.com/api/webhooks/<d18>/<<w68>>",
    "discord-bot": "MT<A22>.<w6>.<w38>",
    "teams-webhook": "https://acme.webhook.office.com/webhookb2/<<u>@<u>/IncomingWebhook/<h32>/<u>>",
    "telegram-bot": "<d10>:AA<w33>",
    "sendgrid-key": "SG.<w22>.<w43>",
    "mailgun-key": "key-<h32>",
    "mailgun-public-key": "pubkey-<h32>",
    "mailgun-signing-key": "<h32>-<h8>-<h8>",
    "mailchimp-key": "<h32>-us12",
    "sendinblue-key": "xkeysib-<h64>-<A16>",
    "resend-key": "re_<A8>_<A24>",
    "courier-key": "pk_prod_<U28>",
    "twilio-key": "SK<h32>",
    "twilio-account": "AC<h32>",
    "intercom-token": "dG9rO<A54>=",
    "twitter-bearer": "AAAAAAAAAAAAAAAAAAAAA<A80>",
    "facebook-token": "EAAB<A100>",
    "instagram-token": "IGQV<A120>",
    "hubspot-token": "pat-na1-<u>",
    "stripe-live": "sk_live_<A24>",
    "stripe-test": "sk_test_<A24>",
    "stripe-restricted": "rk_live_<A99>",
    "stripe-webhook": "whsec_<A32>",
    "square-access": "sq0atp-<w22>",
    "square-secret": "sq0csp-<w43>",
    "square-sandbox": "EAAAl<w59>",
    "braintree-token": "access_token$production$<l16>$<h32>",
    "plaid-token": "access-sandbox-<u>",
    "flutterwave-secret": "FLWSECK-<h32>-X",
    "easypost-live": "EZAK<A54>",
    "easypost-test": "EZTK<A54>",
    "duffel-token": "duffel_live_<w43>",
    "shippo-token": "shippo_live_<h40>",
    "lob-key": "live_<h35>",
    "razorpay-key": "rzp_live_<A14>",
    "mercadopago-token": "APP_USR-<d16>-<d6>-<h32>-<d9>",
    "shopify-access": "shpat_<h32>",
    "shopify-shared-secret": "shpss_<h32>",
    "shopify-custom-app": "shpca_<h32>",
    "shopify-private-app": "shppa_<h32>",
    "databricks-token": "dapi<h32>",
    "supabase-token": "sbp_<h40>",
    "supabase-secret": "sb_secret_<w31>",
    "planetscale-token": "pscale_tkn_<w43>",
    "planetscale-password": "pscale_pw_<w43>",
    "neon-key": "napi_<l64>",
    "neon-password": "npg_<A12>",
    "clickhouse-key": "4b1d<A38>",
    "airtable-token": "pat<A14>.<h64>",
    "contentful-token": "CFPAT-<w43>",
    "sentry-user": "sntryu_<h64>",
    "sentry-organization": "sntrys_eyJ<A120>_<b43>",
    "newrelic-user": "NRAK-<U27>",
    "newrelic-insert": "NRII-<w32>",
    "newrelic-browser": "NRJS-<h19>",
    "newrelic-license": "<h36>NRAL",
    "grafana-service-account": "glsa_<A32>_<h8>",
    "grafana-cloud": "glc_eyJ<A80>",
    "grafana-legacy": "eyJrIjoi<A80>",
    "dynatrace-token": "dt0c01.<U24>.<U64>",
    "mapbox-token": "sk.eyJ<w80>.<w22>",
    "maxmind-key": "<A6>_<A29>_mmk",
    "linear-key": "lin_api_<A40>",
    "linear-oauth": "lin_oauth_<h64>",
    "notion-internal": "secret_<A43>",
    "notion-token": "ntn_<d11><A35>",
    "postman-key": "PMAK-<h24>-<h34>",
    "figma-token": "figd_<w40>",
    "asana-token": "1/<d16>:<h32>",
    "asana-token-v2": "2/<d16>/<d16>:<h32>",
    "frameio-token": "fio-u-<w64>",
    "typeform-token": "tfp_<w44>_<w14>",
    "readme-key": "rdme_<l70>",
    "clickup-token": "pk_<d8>_<U32>",
    "adafruit-key": "aio_<A28>",
    "adobe-secret": "p8e-<w32>",
    "dropbox-token": "sl.<w140>",
    "okta-token": "SSWS 00<w40>",
    "intra42-secret": "s-s4t2ud-<h64>",
    "authress-key": "sc_<A12>.<A4>.acc_<A16>.<b40>",
    "facebook-app-token": "<d16>|<w27>",
    "gitlab-session": "_gitlab_session=<h32>",
    "aws-bedrock-short-lived": "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t<b80>",
    "vault-legacy": "s.<A24>",
    "polar-token": "polar_oat_<w43>",
    "settlemint-token": "sm_pat_<A16>",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJ<w80>.<w43>",
    "jwt-encoded": "ZXlK<b160>",
}

BLOCKS: dict[str, str] = {
    "pem-private-key": "-----BEGIN RSA PRIVATE KEY-----\n<b64>\n<b64>\n<b64>\n<b40>==\n-----END "
    "RSA PRIVATE KEY-----",
    "pgp-private-key": (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n<b64>\n<b64>\n=<b4>\n-----END PGP "
        "PRIVATE KEY BLOCK-----"
    ),
    "ssh2-private-key": (
        '---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "k"\n<b64>\n<b30>==\n'
        "---- END SSH2 ENCRYPTED PRIVATE KEY ----"
    ),
    "putty-private-key": "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: "
    "3\n<<b64>\n<b64>\n<b40>>\nPrivate-MAC: <h40>",
    "pem-private-key-encoded": "client-key-data: "
    "<LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ<b200>>",
}

CARRIED: dict[str, str] = {
    "url-password": "postgresql://app:<<A18>>@db.internal:5432/app",
    "url-token-user": "git clone https://<<A40>>@git.internal/team/repo.git",
    "url-query-credential": "https://api.internal/v1/items?limit=5&key=<<A32>>",
    "authorization-bearer": "Authorization: Bearer <<A40>>",
    "authorization-basic": "Authorization: Basic <<b30>==>",
    "authorization-scheme": "Authorization: ApiKey <<A40>>",
    "cookie-session": "curl -H 'Cookie: <sid=<A32>; theme=dark>' https://app.internal",
    "curl-user": "curl -sS -u admin:<<A8>!9x> https://app.internal/health",
    "named-header": "X-Acme-Auth: <<A32>>",
    "netrc-password": "machine git.internal login bob password <<A12>7q>",
    "npmrc-auth": "//registry.internal/:_authToken=<<u>>",
    "docker-config-auth": '{"auths": {"registry.internal": {"auth": "<<b38>==>"}}}',
    "pgpass-line": "db.internal:5432:app:app:<<A14>3z>",
    "aws-secret-key": "aws_secret_access_key = <<b40>>",
    "assigned-password": 'db_password = "<<A9>!7k>"',
    "assigned-pass": "DB_PASS=<<A12>4w>",
    "assigned-secret": '"client_secret": "<<A32>>"',
    "assigned-key": "API_KEY=<<A32>>",
    "assigned-token": "export DEPLOY_TOKEN=<<A32>>",
    "assigned-credential": 'credentials = "<<A32>>"',
    "option-password": "deploy --password <<A10>!4z> --force",
    "option-secret": "deploy --client-secret <<A32>> --force",
    "option-key": "deploy --api-key <<A32>> --force",
    "option-token": "deploy --token <<A32>> --force",
    "told-password": "By the way, the password for staging is <<A10>-5Y9>",
    "told-secret": "The shared secret is `<<A24>>` until Friday",
    "told-key": "Our api key is <<A32>>",
    "told-token": "The token is <<A32>>",
}


def make(template: str, dice: random.Random) -> tuple[str, str]:
    """Return a text made from a template and the secret in it: what stands in outer `<…>`, or all
    of it.
    """
    filled = re.sub(
        r"<([A-Za-z])(\d*)>",
        lambda m: (
            str(uuid.UUID(int=dice.getrandbits(128), version=4))
            if m[1] == "u"
            else "".join(dice.choices(ALPHABETS[m[1]], k=int(m[2])))
        ),
        template,
    )
    marked = re.search(r"<(.*)>", filled, re.DOTALL)
    if not marked:
        return filled, filled
    return filled[: marked.start()] + marked[1] + filled[marked.end() :], marked[1]


def carriers(secret: str) -> dict[str, str]:
    """The places where an agent meets a secret."""
    return {
        "prose": f"I tried it with {secret} and the server still answers 403.",
        "sentence end": f"The one that works is {secret}",
        "json": json.dumps({"user": "bob", "value": secret, "n": 3}),
        "json in json": json.dumps({"content": json.dumps({"env": f"A=1\n{secret}\nB=2"})}),
        "env": f"HOST=localhost\nEXTERNAL_SERVICE={secret}\nDEBUG=1\n",
        "shell": f"export SERVICE='{secret}' && ./run.sh",
        "python": f'client = Client("{secret}", timeout=3)',
        "javascript": f"const client = connect(`{secret}`);",
        "yaml": f"service:\n  value: {secret}\n  retries: 3\n",
        "url": f"https://service.internal/callback?state={secret}&page=2",
        "markdown": f"| name | value |\n|---|---|\n| service | `{secret}` |",
        "terminal": f"\x1b[32m{secret}\x1b[0m\n$ ",
        "non-ascii": f"Der Schlüssel lautet „{secret}“ – bitte löschen 🙏",
    }


NAMES = (
    "password", "DB_PASSWORD", "dbPassword", "api_key", "API_KEY", "apiKey", "client_secret",
    "clientSecret",
    "SECRET_KEY", "secret", "token", "auth_token", "accessToken", "ACME_API_TOKEN", "private_key",
    "encryption_key",
    "signing_key", "webhook_secret", "jwt_secret", "admin_password", "smtp_password",
    "service_token", "access_key",
    "refresh_token",
)  # fmt: skip
VALUES = (
    "<A20>",
    "<A32>",
    "<A40>",
    "<h32>",
    "<h40>",
    "<h64>",
    "<l24>",
    "<b43>=",
    "<w32>",
    "<A16>",
    "<A6>-<A6>-<A6>-<A6>",
)
PASSWORDS = ("<A12>", "<A7>!<A3>", "<a6>-<A4>7", "<A5>#<A5>9", "<L5>$<d4>", "<A16>")
SYNTAXES = (
    "{name} = '{value}'",
    '{name} = "{value}"',
    '{name}: "{value}"',
    "{name}: {value}",
    "{name}={value}",
    "export {name}={value}",
    '"{name}": "{value}",',
    "'{name}': '{value}',",
    '{{\\"{name}\\": \\"{value}\\"}}',
    'const {name} = "{value}";',
    'let {name}: string = "{value}";',
    '{name}: str = "{value}"',
    '{name} := "{value}"',
    '{name} => "{value}"',
    'os.environ["{name}"] = "{value}"',
    'client.connect(host="db", {name}="{value}")',
    "<{name}>{value}</{name}>",
    '<add key="{name}" value="{value}" />',
    '("{name}", "{value}")',
    "docker run -e {name}={value} app",
    "- **{name}**: `{value}`",
    "Server=db;User=app;{name}={value};Timeout=3",
    "user=bob&{name}={value}&page=2",
    "# {name}: {value}",
)


def assignments(dice: random.Random, count: int) -> list[tuple[str, str]]:
    """Random assignments of random values to telling names, each with its value."""
    made = []
    for number in range(count):
        name = dice.choice(NAMES)
        value, _ = make(dice.choice(PASSWORDS if "password" in name.lower() else VALUES), dice)
        made.append((SYNTAXES[number % len(SYNTAXES)].format(name=name, value=value), value))
    return made
