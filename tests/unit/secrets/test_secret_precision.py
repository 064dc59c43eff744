"""What must not be taken for a secret."""

from __future__ import annotations

import random
import sysconfig
from pathlib import Path

import pytest

from smara.secrets import scan

BENIGN = [
    "password = get_password()",
    "password = getpass.getpass('Password: ')",
    "token = None",
    "token: str | None = None",
    "key: value",
    "    private_key: ed25519.Ed25519PrivateKey",
    "X25519PrivateKey.register(rust_openssl.x25519.X25519PrivateKey)",
    '    AZURE_APP_SERVICE = "azure.app_service"',
    'ALIBABA_CLOUD_ECS = "alibaba_cloud_ecs"',
    'remote = "https://REDACTED:REDACTED@example.com/r.git"',
    'secret = os.environ["CLIENT_SECRET"]',
    'api_key = os.getenv("OPENAI_API_KEY", "")',
    "const apiKey = process.env.API_KEY_V2_PROD;",
    "PASSWORD=${DB_PASSWORD_2024}",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password: {{ vault_db_password_1 }}",
    "Authorization: Bearer <your-token>",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer ${API_TOKEN}",
    "api_key = 'YOUR_API_KEY_HERE_123'",
    "api_key: xxxxxxxxxxxxxxxxxxxxxxxx",
    "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
    "password=changeme123",
    "password: '********'",
    "password = 'password123'",
    "postgres://user:password@localhost:5432/db",
    "postgres://user:${PGPASSWORD}@localhost/db",
    "http://localhost:8080/path@2x.png",
    "git checkout 3f786850e387550fdab836ed7e6dc881de23001b",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "id: 550e8400-e29b-41d4-a716-446655440000",
    "session_id = 550e8400-e29b-41d4-a716-446655440000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "secret: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '"integrity": "sha512-Yh4WzZqk3rJv0pQ6Jx8kE2mT5nB7cD9fG1hL3oP5qR7sU9vX1yZ3aB5cD7eF9gH=="',
    "--hash=sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4)",
    "max_tokens: 4096, temperature: 0.7",
    '"input_tokens": 138312, "output_tokens": 3199',
    "tokens_per_second = 1532.7",
    "tokenizer = AutoTokenizer.from_pretrained('Qwen/Qwen2.5-7B-Instruct')",
    'model = "claude-3-5-sonnet-20241022"',
    "token_id = a8f5f167f44f4964e6c998dee827110c",
    "password_hash = 5f4dcc3b5aa765d61d8327deb882cf99",
    "CLOUDFLARE_ZONE_ID=023e105f4ecef8ad9ca31a8372d0c353",
    "TWILIO_ACCOUNT_NAME=production-cluster",
    "discord: https://discord.gg/abc123XYZ9",
    "secretKeyRef: {name: db-credentials-v2, key: password}",
    ".token.string-2x { color: #a1b2c3 }",
    "const TokenKind2Name = lookupTokenKind2Name(token)",
    "The password is required and must be at least 8 characters.",
    "The token is one of the 128-bit values listed below.",
    "My secret is that I never liked 2-factor prompts.",
    "a risk-averse, disk-based, task-oriented design with sk-learn",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIDXTCCAkWgAwIBAgIJAKl7V7p8YwH2\n-----END CERTIFICATE-----",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    'if token == "access_token_type": pass',
    "$ deploy --token-file ~/.config/acme/token --password-stdin",
    "npm_config_registry=https://registry.npmjs.org/",
]


@pytest.mark.parametrize("text", BENIGN)
def test_benign_text_is_left_alone(text: str) -> None:
    assert [(finding.rule, text[finding.start : finding.end]) for finding in scan(text)] == []


def test_standard_library_has_at_most_one_false_hit_per_ten_thousand_lines() -> None:
    """Sixty thousand lines or more of source, a sample that changes only with this seed."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)
    random.Random(7).shuffle(files)
    lines, hits = 0, []
    for path in files:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        lines += text.count("\n") + 1
        hits += [(path.name, finding.rule) for finding in scan(text)]
        if lines >= 60_000:
            break
    assert lines >= 60_000
    assert len(hits) <= lines / 10_000, hits
