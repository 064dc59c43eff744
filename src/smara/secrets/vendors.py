"""Detect secrets by their own format, vendor by vendor."""

from __future__ import annotations

from smara.secrets.rule import (
    ALNUM,
    BASE64,
    HEX,
    LOWER,
    START,
    UPPER,
    WORD,
    Rule,
    around,
    prefixed,
    shaped,
)

# A UUID whose first four digits belong to the opening.
UUID_REST = "[0-9A-Fa-f]{4}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

CODE_HOSTING = (
    prefixed("aiven", "aiven-password", "AVNS_", alphabet=WORD, least=16),
    prefixed("github-personal", "github-token", "ghp_", alphabet=ALNUM, least=30),
    prefixed("github-oauth", "github-token", "gho_", alphabet=ALNUM, least=30),
    prefixed("github-user-to-server", "github-token", "ghu_", alphabet=ALNUM, least=30),
    prefixed("github-app", "github-token", "ghs_", alphabet=ALNUM, least=30),
    prefixed("github-refresh", "github-token", "ghr_", alphabet=ALNUM, least=30),
    prefixed(
        "github-fine-grained", "github-token", "github_pat_", alphabet="[A-Za-z0-9_]", least=50
    ),
    shaped(
        "gitlab-personal",
        "gitlab-token",
        f"glpat-{WORD}{{6}}",
        rest=rf"{WORD}{{14,}}(?:\.{LOWER}{{2}}\.{LOWER}{{9}})?",
    ),
    prefixed("gitlab-deploy", "gitlab-token", "gldt-", alphabet=WORD, least=20),
    prefixed("gitlab-trigger", "gitlab-token", "glptt-", alphabet=HEX, least=40),
    shaped(
        "gitlab-runner",
        "gitlab-token",
        "glrt(?:r)?-[A-Za-z0-9_-]{6}",
        rest=rf"{WORD}{{14,}}(?:\.{LOWER}{{2}}\.{LOWER}{{9}})?",
    ),
    prefixed("gitlab-runner-registration", "gitlab-token", "GR1348941", alphabet=WORD, least=20),
    prefixed("gitlab-job", "gitlab-token", "glcbt-", alphabet=WORD, least=20),
    prefixed("gitlab-feed", "gitlab-token", "glft-", alphabet=WORD, least=20),
    prefixed("gitlab-incoming-mail", "gitlab-token", "glimt-", alphabet=WORD, least=20),
    prefixed("gitlab-agent", "gitlab-token", "glagent-", alphabet=WORD, least=40),
    prefixed("gitlab-scim", "gitlab-token", "glsoat-", alphabet=WORD, least=20),
    prefixed("gitlab-oauth", "gitlab-token", "gloas-", alphabet=WORD, least=60),
    prefixed("gitlab-feature-flag", "gitlab-token", "glffct-", alphabet=WORD, least=20),
    prefixed(
        "bitbucket-app-password",
        "bitbucket-token",
        "ATBB",
        alphabet="[A-Za-z0-9_=-]",
        least=28,
        min_entropy=3.2,
    ),
    prefixed("atlassian-api", "atlassian-token", "ATATT3", alphabet="[A-Za-z0-9_=-]", least=60),
    prefixed("atlassian-access", "atlassian-token", "ATCTT3", alphabet="[A-Za-z0-9_=-]", least=60),
    prefixed("trello-token", "trello-token", "ATTA", alphabet=HEX, least=60),
    prefixed("npm-token", "npm-token", "npm_", alphabet=ALNUM, least=36),
    prefixed("pypi-token", "pypi-token", "pypi-", alphabet=WORD, least=60),
    prefixed("rubygems-key", "rubygems-key", "rubygems_", alphabet=HEX, least=48),
    prefixed("nuget-key", "nuget-key", "oy2", alphabet=LOWER, least=43, min_entropy=3.2),
    prefixed("crates-token", "crates-token", "cio", alphabet=ALNUM, least=32, min_entropy=3.6),
    prefixed("clojars-token", "clojars-token", "CLOJARS_", alphabet=LOWER, least=60),
    prefixed("docker-personal", "docker-token", "dckr_pat_", alphabet=WORD, least=20),
    prefixed("docker-organization", "docker-token", "dckr_oat_", alphabet=WORD, least=20),
    prefixed("sourcegraph-token", "sourcegraph-token", "sgp_", alphabet="[0-9a-f_]", least=40),
    prefixed("sonar-token", "sonar-token", "sq[upa]_", alphabet=HEX, least=40),
    prefixed("buildkite-token", "buildkite-token", "bkua_", alphabet=HEX, least=40),
    prefixed("circleci-personal", "circleci-token", "CCIPAT_", alphabet="[A-Za-z0-9_]", least=40),
    prefixed("circleci-project", "circleci-token", "CCIPRJ_", alphabet="[A-Za-z0-9_]", least=40),
    prefixed("octopus-key", "octopus-key", "API-", alphabet=UPPER, least=25, min_entropy=3.2),
    prefixed("artifactory-key", "artifactory-key", "AKCp", alphabet=ALNUM, least=60),
    prefixed("artifactory-reference", "artifactory-token", "cmVmd", alphabet=ALNUM, least=55),
    prefixed("snyk-token", "snyk-token", r"snyk_[a-z]{3}\.", alphabet=r"[A-Za-z0-9_.-]", least=30),
    prefixed("gitlab-workspace", "gitlab-token", "glwt-", alphabet=WORD, least=20),
)

CLOUDS = (
    prefixed(
        "aws-access-key",
        "aws-access-key",
        "(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])",
        alphabet=UPPER,
        least=16,
        min_entropy=3.0,
    ),
    prefixed(
        "aws-bedrock-key", "aws-bedrock-key", "ABSK", alphabet=BASE64, least=100, tail="={0,2}"
    ),
    prefixed("google-api-key", "google-api-key", "AIza", alphabet=WORD, least=35),
    prefixed("google-client-secret", "google-client-secret", "GOCSPX-", alphabet=WORD, least=24),
    prefixed(
        "google-access-token", "google-token", r"ya29\.", alphabet=r"[A-Za-z0-9_.-]", least=30
    ),
    prefixed("google-refresh-token", "google-token", "1//0", alphabet=WORD, least=40),
    around(
        "azure-client-secret",
        "azure-client-secret",
        "[0-9]Q~[A-Za-z0-9_~.-]{6}",
        pattern=r"([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})",
        lookback_bytes=3,
    ),
    Rule(
        "azure-storage-key",
        "azure-storage-key",
        ("(?i:AccountKey)[\"']?[ ]?[=:]",),
        pattern=f"(?i:AccountKey)[\"']?[ ]?[=:][ \"']{{0,2}}({BASE64}{{80,}}={{0,2}})",
    ),
    around(
        "azure-storage-key-marked",
        "azure-storage-key",
        r"\+ASt[A-Za-z0-9+/]{6}==",
        pattern=rf"({BASE64}{{76}}\+ASt{BASE64}{{6}}==)",
        lookback_bytes=76,
    ),
    Rule(
        "azure-shared-access-key",
        "azure-shared-access-key",
        ("(?i:SharedAccessKey)[ ]?=",),
        pattern=f"(?i:SharedAccessKey)[ ]?=[ \"']{{0,2}}({BASE64}{{32,}}={{0,2}})",
    ),
    Rule(
        "azure-sas-signature",
        "azure-sas-signature",
        (r"[?&;]sig=[A-Za-z0-9%+/]{6}",),
        pattern=r"[?&;]sig=([A-Za-z0-9%+/]{40,}={0,2})",
        is_bounded=False,
        min_entropy=3.6,
    ),
    around(
        "azure-devops-token",
        "azure-devops-token",
        "AZDO[A-Za-z0-9]{4}",
        pattern=f"({ALNUM}{{76}}AZDO{ALNUM}{{4}})",
        lookback_bytes=76,
    ),
    around(
        "azure-function-key",
        "azure-function-key",
        "AzFu[A-Za-z0-9_-]{6}",
        pattern=f"({WORD}{{44}}AzFu{WORD}{{7,}}={{0,2}})",
        lookback_bytes=44,
    ),
    around(
        "azure-ai-key",
        "azure-ai-key",
        "JQQJ9[A-Za-z0-9]{6}",
        pattern=f"({ALNUM}{{52}}JQQJ9{ALNUM}{{20,}})",
        lookback_bytes=52,
    ),
    prefixed(
        "alibaba-access-key",
        "alibaba-access-key",
        "LTAI",
        alphabet=ALNUM,
        least=16,
        min_entropy=3.2,
    ),
    prefixed(
        "tencent-secret-id", "tencent-secret-id", "AKID", alphabet=ALNUM, least=32, min_entropy=3.2
    ),
    prefixed("yandex-api-key", "yandex-key", "AQVN", alphabet=WORD, least=35),
    shaped(
        "yandex-iam-token",
        "yandex-token",
        r"t1\.[A-Za-z0-9_-]{6}",
        rest=r"[A-Za-z0-9_-]{10,}={0,2}\.[A-Za-z0-9_-]{80,}={0,2}",
    ),
    prefixed("digitalocean-personal", "digitalocean-token", "dop_v1_", alphabet=HEX, least=60),
    prefixed("digitalocean-oauth", "digitalocean-token", "doo_v1_", alphabet=HEX, least=60),
    prefixed("digitalocean-refresh", "digitalocean-token", "dor_v1_", alphabet=HEX, least=60),
    shaped(
        "cloudflare-origin-ca",
        "cloudflare-key",
        f"v1\\.0-{HEX}{{6}}",
        rest=f"{HEX}{{18}}-{HEX}{{140,}}",
    ),
    prefixed("heroku-key", "heroku-key", "HRKU-", alphabet=WORD, least=36),
    prefixed("netlify-token", "netlify-token", "nf[pcub]_", alphabet=ALNUM, least=36),
    prefixed("vercel-blob", "vercel-token", "vercel_blob_rw_", alphabet="[A-Za-z0-9_]", least=30),
    prefixed(
        "vercel-token", "vercel-token", "vc[pkiar]_", alphabet=ALNUM, least=24, min_entropy=3.2
    ),
    prefixed(
        "fly-token", "fly-token", r"FlyV1 fm[12][ar]?_", alphabet=r"[A-Za-z0-9+/=_,-]", least=40
    ),
    prefixed(
        "fly-macaroon", "fly-token", r"fm[12][ar]?_", alphabet=r"[A-Za-z0-9+/=_,-]", least=100
    ),
    prefixed("fly-oauth", "fly-token", "fo1_", alphabet=WORD, least=40),
    prefixed("render-key", "render-key", "rnd_", alphabet=ALNUM, least=28, min_entropy=3.2),
    prefixed("scalingo-token", "scalingo-token", "tk-us-", alphabet=WORD, least=48),
    prefixed("deno-token", "deno-token", "dd[pwo]_", alphabet=ALNUM, least=36, min_entropy=3.2),
    prefixed(
        "tailscale-key",
        "tailscale-key",
        "tskey-(?:auth|api|client|scim|webhook)-",
        alphabet="[A-Za-z0-9-]",
        least=20,
    ),
    prefixed("openshift-token", "openshift-token", "sha256~", alphabet=WORD, least=43),
    prefixed("vault-service", "vault-token", r"hvs\.", alphabet=WORD, least=24),
    Rule(
        "vault-legacy",
        "vault-token",
        (r"s\.[A-Za-z0-9]{24}",),
        pattern=rf"(s\.{ALNUM}{{24}})(?:[^A-Za-z0-9_]|\z)",
        shape="random",
    ),
    prefixed("vault-batch", "vault-token", r"hvb\.", alphabet=WORD, least=100),
    prefixed("vault-recovery", "vault-token", r"hvr\.", alphabet=WORD, least=24),
    around(
        "terraform-token",
        "terraform-token",
        r"\.atlasv1\.[A-Za-z0-9_=-]{6}",
        pattern=rf"({ALNUM}{{10,14}}\.atlasv1\.[A-Za-z0-9_=-]{{50,}})",
        lookback_bytes=14,
    ),
    prefixed("pulumi-token", "pulumi-token", "pul-", alphabet=HEX, least=40),
    shaped(
        "doppler-token",
        "doppler-token",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{6}",
        rest=r"[A-Za-z0-9_.-]{30,}",
    ),
    prefixed("infracost-key", "infracost-key", "ico-", alphabet=ALNUM, least=32),
    shaped(
        "harness-token",
        "harness-token",
        r"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.",
        rest=rf"{ALNUM}{{24}}\.{ALNUM}{{20}}",
    ),
    prefixed(
        "defined-networking",
        "defined-networking-key",
        "dnkey-",
        alphabet="[A-Za-z0-9_=-]",
        least=50,
    ),
    prefixed("prefect-key", "prefect-key", "pn[ub]_", alphabet=ALNUM, least=36),
    shaped(
        "launchdarkly-key", "launchdarkly-key", "(?:sdk|mob|api)-[0-9A-Fa-f]{4}", rest=UUID_REST
    ),
    shaped(
        "onepassword-service-account", "1password-token", "ops_eyJ", rest=r"[A-Za-z0-9+/_=-]{100,}"
    ),
    shaped(
        "onepassword-secret-key",
        "1password-key",
        "A3-[A-Z0-9]{6}-",
        rest="(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    prefixed("age-secret-key", "age-key", "AGE-SECRET-KEY-1", alphabet=UPPER, least=50),
    prefixed("cockroach-key", "cockroach-key", "CCDB1_", alphabet="[A-Za-z0-9_]", least=40),
    prefixed(
        "confluent-key",
        "confluent-key",
        "cflt",
        alphabet="[A-Za-z0-9+/]",
        least=50,
        min_entropy=3.6,
    ),
)

MODELS = (
    prefixed("anthropic-key", "anthropic-key", "sk-ant-", alphabet=WORD, least=20),
    prefixed("openai-project-key", "openai-key", "sk-proj-", alphabet=WORD, least=30),
    prefixed("openai-service-key", "openai-key", "sk-svcacct-", alphabet=WORD, least=30),
    prefixed("openai-admin-key", "openai-key", "sk-admin-", alphabet=WORD, least=40),
    prefixed("openrouter-key", "openrouter-key", "sk-or-v1-", alphabet=HEX, least=60),
    shaped("langfuse-key", "langfuse-key", "sk-lf-[0-9A-Fa-f]{4}", rest=UUID_REST),
    prefixed("openai-legacy-key", "openai-key", "sk-", alphabet=ALNUM, least=32, min_entropy=3.0),
    prefixed(
        "huggingface-user", "huggingface-token", "hf_", alphabet=ALNUM, least=30, min_entropy=3.2
    ),
    prefixed(
        "huggingface-organization",
        "huggingface-token",
        "api_org_",
        alphabet=ALNUM,
        least=30,
        min_entropy=3.2,
    ),
    prefixed("replicate-token", "replicate-token", "r8_", alphabet=ALNUM, least=36),
    prefixed("groq-key", "groq-key", "gsk_", alphabet=ALNUM, least=40),
    prefixed("perplexity-key", "perplexity-key", "pplx-", alphabet=ALNUM, least=32),
    prefixed("xai-key", "xai-key", "xai-", alphabet=ALNUM, least=60),
    prefixed("cerebras-key", "cerebras-key", "csk-", alphabet=LOWER, least=40),
    prefixed("nvidia-key", "nvidia-key", "nvapi-", alphabet=WORD, least=50),
    prefixed("fireworks-key", "fireworks-key", "fw_", alphabet=ALNUM, least=22, min_entropy=3.4),
    prefixed("together-key", "together-key", "tgp_v1_", alphabet=WORD, least=40),
    prefixed("tavily-key", "tavily-key", "tvly-(?:dev-|prod-)?", alphabet=ALNUM, least=30),
    prefixed("voyage-key", "voyage-key", "pa-", alphabet=WORD, least=40, min_entropy=3.8),
    prefixed("jina-key", "jina-key", "jina_", alphabet=WORD, least=50),
    prefixed("pinecone-key", "pinecone-key", "pcsk_", alphabet="[A-Za-z0-9_]", least=50),
    prefixed("langsmith-key", "langsmith-key", "lsv2_(?:pt|sk)_", alphabet="[0-9a-f_]", least=40),
    prefixed("wandb-key", "wandb-key", "wandb_v1_", alphabet="[A-Za-z0-9_]", least=40),
    prefixed("elevenlabs-key", "elevenlabs-key", "sk_", alphabet=HEX, least=48),
)

MESSAGES = (
    prefixed("slack-bot", "slack-token", "xoxb-", alphabet="[A-Za-z0-9-]", least=20),
    prefixed("slack-user", "slack-token", "xoxp-", alphabet="[A-Za-z0-9-]", least=20),
    prefixed("slack-workspace", "slack-token", "xox[aorsc]-", alphabet="[A-Za-z0-9-]", least=10),
    prefixed(
        "slack-configuration",
        "slack-token",
        r"xoxe(?:\.xox[bp])?-",
        alphabet="[A-Za-z0-9-]",
        least=20,
    ),
    prefixed("slack-cookie", "slack-token", "xoxd-", alphabet="[A-Za-z0-9%/+=_-]", least=20),
    prefixed("slack-app", "slack-token", "xapp-", alphabet="[A-Za-z0-9-]", least=14),
    Rule(
        "slack-webhook",
        "slack-webhook",
        (r"hooks\.slack\.com/(?:services|workflows|triggers)/",),
        pattern=r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_]{20,})",
    ),
    Rule(
        "discord-webhook",
        "discord-webhook",
        (r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{6}",),
        pattern=r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{15,20}/([A-Za-z0-9_-]{50,})",
    ),
    around(
        "discord-bot",
        "discord-token",
        rf"\.{WORD}{{6}}\.{WORD}{{27}}",
        pattern=rf"{START}([MNO]{WORD}{{22,27}}\.{WORD}{{6}}\.{WORD}{{27,}})",
        lookback_bytes=29,
    ),
    Rule(
        "teams-webhook",
        "teams-webhook",
        (r"webhook\.office\.com/webhookb2/",),
        pattern=r"webhook\.office\.com/webhookb2/([A-Za-z0-9@-]{36,}/IncomingWebhook/[A-Za-z0-9/-]{32,})",
    ),
    around(
        "telegram-bot",
        "telegram-token",
        r":AA[A-Za-z0-9_-]{12}",
        pattern=r"(?:^|[^0-9])([0-9]{8,11}:AA[A-Za-z0-9_-]{32,})",
        lookback_bytes=12,
    ),
    shaped("sendgrid-key", "sendgrid-key", rf"SG\.{WORD}{{6}}", rest=r"[A-Za-z0-9_=.-]{54,}"),
    prefixed("mailgun-key", "mailgun-key", "key-", alphabet=HEX, least=32),
    prefixed("mailgun-public-key", "mailgun-key", "pubkey-", alphabet=HEX, least=32),
    around(
        "mailgun-signing-key",
        "mailgun-key",
        f"-{HEX}{{8}}-{HEX}{{8}}",
        pattern=rf"{START}({HEX}{{32}}-{HEX}{{8}}-{HEX}{{8}})\b",
        lookback_bytes=32,
    ),
    around(
        "mailchimp-key",
        "mailchimp-key",
        r"-us[0-9]{1,2}\b",
        pattern=rf"{START}({HEX}{{32}}-us[0-9]{{1,2}})\b",
        lookback_bytes=32,
    ),
    prefixed(
        "sendinblue-key", "brevo-key", "x(?:keysib|smtpsib)-", alphabet="[a-zA-Z0-9-]", least=64
    ),
    shaped(
        "resend-key", "resend-key", f"re_{ALNUM}{{6,10}}_", rest=f"{ALNUM}{{20,}}", min_entropy=3.2
    ),
    prefixed("courier-key", "courier-key", "pk_prod_", alphabet=UPPER, least=24),
    prefixed("twilio-key", "twilio-key", "SK", alphabet="[0-9a-fA-F]", least=32),
    prefixed("twilio-account", "twilio-account", "AC", alphabet=HEX, least=32),
    prefixed("intercom-token", "intercom-token", "dG9rO", alphabet="[A-Za-z0-9+/_=-]", least=50),
    prefixed(
        "twitter-bearer",
        "twitter-token",
        "AAAAAAAAAAAAAAAAAAAAA",
        alphabet="[A-Za-z0-9%]",
        least=60,
    ),
    prefixed("facebook-token", "facebook-token", "EAA[B-Z]", alphabet=ALNUM, least=60),
    prefixed("instagram-token", "instagram-token", "IG(?:QV|QW|AA)", alphabet=WORD, least=60),
    shaped("hubspot-token", "hubspot-token", "pat-(?:na|eu)[0-9]-[0-9A-Fa-f]{4}", rest=UUID_REST),
)

PAYMENTS = (
    prefixed("stripe-live", "stripe-key", "sk_live_", alphabet="[A-Za-z0-9_]", least=10),
    prefixed("stripe-test", "stripe-key", "sk_test_", alphabet="[A-Za-z0-9_]", least=10),
    prefixed(
        "stripe-restricted",
        "stripe-key",
        "rk_(?:live|test|prod)_",
        alphabet="[A-Za-z0-9_]",
        least=10,
    ),
    prefixed(
        "stripe-webhook", "stripe-webhook-secret", "whsec_", alphabet="[A-Za-z0-9+/=]", least=24
    ),
    prefixed("square-access", "square-token", "sq0atp-", alphabet=WORD, least=22),
    prefixed("square-secret", "square-token", "sq0csp-", alphabet=WORD, least=40),
    prefixed("square-sandbox", "square-token", "EAAA", alphabet=WORD, least=22, min_entropy=3.8),
    shaped(
        "braintree-token",
        "braintree-token",
        r"access_token\$(?:production|sandbox)\$",
        rest=r"[0-9a-z]{16}\$[0-9a-f]{32}",
    ),
    shaped(
        "plaid-token",
        "plaid-token",
        "access-(?:sandbox|development|production)-[0-9A-Fa-f]{4}",
        rest=UUID_REST,
    ),
    shaped(
        "flutterwave-secret",
        "flutterwave-key",
        "FLWSECK(?:_TEST)?-",
        rest="[A-Za-z0-9]{12,}(?:-X)?",
    ),
    prefixed("easypost-live", "easypost-key", "EZAK", alphabet=ALNUM, least=50),
    prefixed("easypost-test", "easypost-key", "EZTK", alphabet=ALNUM, least=50),
    prefixed(
        "duffel-token", "duffel-token", "duffel_(?:test|live)_", alphabet="[A-Za-z0-9_=-]", least=40
    ),
    prefixed(
        "shippo-token", "shippo-token", "shippo_(?:test|live)_", alphabet="[0-9a-fA-F]", least=40
    ),
    prefixed("lob-key", "lob-key", "(?:live|test)_(?:pub_)?", alphabet=HEX, least=31),
    prefixed("razorpay-key", "razorpay-key", "rzp_(?:live|test)_", alphabet=ALNUM, least=14),
    prefixed("mercadopago-token", "mercadopago-token", "APP_USR-", alphabet="[0-9a-f-]", least=40),
    prefixed("shopify-access", "shopify-token", "shpat_", alphabet="[0-9a-fA-F]", least=32),
    prefixed("shopify-shared-secret", "shopify-token", "shpss_", alphabet="[0-9a-fA-F]", least=32),
    prefixed("shopify-custom-app", "shopify-token", "shpca_", alphabet="[0-9a-fA-F]", least=32),
    prefixed("shopify-private-app", "shopify-token", "shppa_", alphabet="[0-9a-fA-F]", least=32),
)

DATA = (
    prefixed(
        "databricks-token",
        "databricks-token",
        "d(?:api|ose)",
        alphabet=HEX,
        least=32,
        tail="(?:-[0-9])?",
    ),
    prefixed("supabase-token", "supabase-token", "sbp_", alphabet="[0-9a-z_]", least=40),
    prefixed("supabase-secret", "supabase-key", "sb_secret_", alphabet=WORD, least=20),
    prefixed(
        "planetscale-token",
        "planetscale-token",
        "pscale_(?:tkn|oauth)_",
        alphabet=r"[A-Za-z0-9_.=-]",
        least=30,
    ),
    prefixed(
        "planetscale-password",
        "planetscale-password",
        "pscale_pw_",
        alphabet=r"[A-Za-z0-9_.=-]",
        least=30,
    ),
    prefixed("neon-key", "neon-key", "napi_", alphabet=LOWER, least=40),
    prefixed("neon-password", "neon-password", "npg_", alphabet=ALNUM, least=12, min_entropy=3.0),
    prefixed("clickhouse-key", "clickhouse-key", "4b1d", alphabet=ALNUM, least=38, min_entropy=3.8),
    shaped("airtable-token", "airtable-token", r"pat[A-Za-z0-9]{14}\.", rest="[0-9a-f]{60,}"),
    prefixed("contentful-token", "contentful-token", "CFPAT-", alphabet=WORD, least=43),
    prefixed("sentry-user", "sentry-token", "sntry[ua]_", alphabet=HEX, least=60),
    shaped("sentry-organization", "sentry-token", "sntrys_eyJ", rest=r"[A-Za-z0-9+/_=-]{60,}"),
    prefixed("newrelic-user", "newrelic-key", "NRA[KA]-", alphabet=UPPER, least=27),
    prefixed("newrelic-insert", "newrelic-key", "NRI[IQ]-", alphabet=WORD, least=32),
    prefixed("newrelic-browser", "newrelic-key", "NRJS-", alphabet=HEX, least=19),
    around(
        "newrelic-license",
        "newrelic-key",
        r"NRAL\b",
        pattern=rf"{START}({HEX}{{36}}NRAL)\b",
        lookback_bytes=36,
    ),
    prefixed(
        "grafana-service-account", "grafana-token", "glsa_", alphabet="[A-Za-z0-9_]", least=32
    ),
    prefixed("grafana-cloud", "grafana-token", "glc_", alphabet="[A-Za-z0-9+/=]", least=32),
    prefixed("grafana-legacy", "grafana-token", "eyJrIjoi", alphabet="[A-Za-z0-9+/=]", least=60),
    shaped(
        "dynatrace-token",
        "dynatrace-token",
        r"dt0[a-z][0-9]{2}\.",
        rest=rf"{ALNUM}{{24}}\.{ALNUM}{{60,}}",
    ),
    prefixed("mapbox-token", "mapbox-token", r"[st]k\.eyJ", alphabet=r"[A-Za-z0-9_.-]", least=60),
    around(
        "maxmind-key",
        "maxmind-key",
        r"_mmk\b",
        pattern=rf"({ALNUM}{{6}}_{ALNUM}{{29}}_mmk)",
        lookback_bytes=36,
    ),
)

TOOLS = (
    prefixed("linear-key", "linear-key", "lin_api_", alphabet=ALNUM, least=32),
    prefixed("linear-oauth", "linear-key", "lin_oauth_", alphabet=ALNUM, least=32),
    prefixed("notion-internal", "notion-token", "secret_", alphabet=ALNUM, least=43),
    prefixed("notion-token", "notion-token", "ntn_", alphabet=ALNUM, least=40),
    prefixed("postman-key", "postman-key", "PMAK-", alphabet="[0-9a-f-]", least=50),
    prefixed("figma-token", "figma-token", "fig[dour]_", alphabet=WORD, least=30, min_entropy=3.2),
    Rule(
        "asana-token",
        "asana-token",
        (r"[0-9]/[0-9]{10,17}:",),
        pattern=rf"([0-9]/[0-9]{{10,17}}:{HEX}{{32}})",
    ),
    Rule(
        "asana-token-v2",
        "asana-token",
        (r"[0-9]/[0-9]{10,17}/",),
        pattern=rf"([0-9]/[0-9]{{10,17}}/[0-9]{{10,17}}:{HEX}{{32}})",
    ),
    prefixed("frameio-token", "frameio-token", "fio-u-", alphabet="[A-Za-z0-9_=-]", least=50),
    prefixed("typeform-token", "typeform-token", "tfp_", alphabet=r"[A-Za-z0-9_.=-]", least=40),
    prefixed("readme-key", "readme-key", "rdme_", alphabet=LOWER, least=60),
    prefixed("clickup-token", "clickup-token", "pk_[0-9]{6,9}_", alphabet=UPPER, least=32),
    prefixed("adafruit-key", "adafruit-key", "aio_", alphabet=ALNUM, least=28),
    prefixed("adobe-secret", "adobe-secret", "p8e-", alphabet=WORD, least=32),
    prefixed("dropbox-token", "dropbox-token", r"sl\.", alphabet="[A-Za-z0-9_=-]", least=120),
    prefixed("okta-token", "okta-token", "SSWS 00", alphabet=WORD, least=36),
    prefixed("intra42-secret", "intra42-secret", "s-s4t2(?:ud|af)-", alphabet=HEX, least=60),
    shaped(
        "authress-key",
        "authress-key",
        r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.",
        rest=r"[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}",
    ),
    Rule(
        "facebook-app-token",
        "facebook-token",
        (r"[0-9]{15,16}(?:\||%7C)",),
        pattern=r"([0-9]{15,16}(?:\||%7C)[A-Za-z0-9_-]{27,40})",
    ),
    prefixed("gitlab-session", "gitlab-cookie", "_gitlab_session=", alphabet=ALNUM, least=32),
    prefixed(
        "aws-bedrock-short-lived", "aws-bedrock-key", "bedrock-api-key-", alphabet=BASE64, least=20
    ),
    prefixed("google-auth-key", "google-api-key", r"AQ\.Ab", alphabet=WORD, least=30),
    prefixed("posthog-personal", "posthog-key", "phx_", alphabet=ALNUM, least=30),
    prefixed("firecrawl-key", "firecrawl-key", "fc-", alphabet=HEX, least=32),
    prefixed("e2b-key", "e2b-key", "e2b_", alphabet=HEX, least=32),
    prefixed("cursor-key", "cursor-key", "key_", alphabet=HEX, least=40),
    prefixed(
        "stytch-secret",
        "stytch-secret",
        "secret-(?:live|test)-",
        alphabet="[A-Za-z0-9_=-]",
        least=24,
    ),
    prefixed("cloudflare-token", "cloudflare-token", "cf(?:ut|at|k)_", alphabet=WORD, least=30),
    prefixed("coderabbit-key", "coderabbit-key", "cr-", alphabet=HEX, least=40),
    prefixed("modal-secret", "modal-token", "as-", alphabet=ALNUM, least=20, shape="random"),
    Rule(
        "password-hash",
        "password-hash",
        (r"\$2[abxy]?\$[0-9]{2}\$[./A-Za-z0-9]{6}",),
        pattern=r"(\$2[abxy]?\$[0-9]{2}\$[./A-Za-z0-9]{53})",
        is_bounded=False,
    ),
    prefixed("polar-token", "polar-token", "polar_(?:oat|pat)_", alphabet=WORD, least=30),
    prefixed(
        "settlemint-token", "settlemint-token", "sm_(?:aat|pat|sat)_", alphabet=ALNUM, least=16
    ),
    shaped(
        "jwt",
        "jwt",
        "ey[JK][A-Za-z0-9_-]{10}",
        rest=rf"{WORD}*\.(?:ey{WORD}{{10,}}(?:\.{WORD}{{10,}})?"
        rf"|{WORD}*\.{WORD}{{10,}}(?:\.{WORD}{{5,}}){{2}})",
    ),
    Rule(
        "jwt-encoded",
        "jwt",
        ("ZXlK[A-Za-z0-9+/]{20}",),
        pattern=f"(ZXlK{BASE64}{{60,}}={{0,2}})",
    ),
)

VENDORS: tuple[Rule, ...] = (*CODE_HOSTING, *CLOUDS, *MODELS, *MESSAGES, *PAYMENTS, *DATA, *TOOLS)
