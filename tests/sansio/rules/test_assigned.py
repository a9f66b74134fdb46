"""Assigned values: by spelling, by quotes, by shape, and what must not be taken for one (facts part 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

VALUE = "k9f3" + "a77bQz"
SPELLINGS = [
    "TOKEN={}",
    "MYSQL_PWD={}",
    "  DB_PASSWORD={} x",
    "foo; TOKEN={}; bar",
    "+TOKEN={}",
    "-SECRET_KEY={}",
    "export PGPASSWORD={}",
    'export API_KEY="{}"',
    'declare -x API_KEY="{}"',
    "+ export 'API_KEY={}'",
    '{{"api_key": "{}"}}',
    '{{"clientSecret":"{}","a":1}}',
    '\\"access_token\\": \\"{}\\"',
    "api_key: {}",
    "  - password: '{}'",
    'api_key = "{}"',
    "api_key = '{}'  # a comment",
    'os.environ["API_KEY"] = "{}"',
    "connect(password='{}', port=1)",
    "{{'token': b'{}'}}",
    'TOKEN: str = "{}"',
    "token := `{}`",
    ":secret => '{}'",
    "user=a&password={}&x=1",
    "GET /p?access_token={} HTTP/1.1",
    "login --token={} --x",
    "login --token {} --x",
    "login --db-password '{}' x",
    "X-Api-Key: {}",
    "password = {}",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_spelling_of_an_assignment_is_found(spelling: str, redacted: Callable[..., str]) -> None:
    """The value goes, and nothing else does."""
    text = redacted(spelling.format(VALUE))
    before, after = spelling.replace("{{", "{").replace("}}", "}").split("{}")
    assert text.startswith(f"{before}[REDACTED:")
    assert text.endswith(f"]{after}")
    assert text.count("REDACTED") == 1


INNOCENT = [
    "token: str",
    "password=None",
    "API_KEY=$VAR",
    "API_KEY=${VAR}",
    'API_KEY="$VAR"',
    "Bearer ${X}",
    "MAX_TOKENS=100",
    "max_tokens: 4096",
    "tokenizer=bpe",
    "self.token = get_token()",
    "self.token = get_token2(x)",
    'password = os.environ["P"]',
    "password = settings.db1.password",
    "risk-adjusted sk-learn sk-estimator-doc-link-label-item",
    "http://host:8080/ http://[::1]:8080 git@host:22/x",
    "+++ b/tokens.py\n-    token: str\n+    token: int\n",
    "send the X-Api-Key: header",
    '"apiKey": "test-api-key", "token": "next_token", "NextToken": "NextToken"',
    "secret: ${{ secrets.X }}",
    "if let token = timeObserverToken",
    "token = token2",
    "PASSWORD=********",
    'password=""',
    "password=''",
    "unix_getpass(prompt='Password: ', stream=None)",
    'print("Token: " + repr(token))',
    "headers['Authorization'] = 'Basic %s' % auth",
    "PWD=/root/x9 OLDPWD=/usr/lib9 PWD=/srv/a1b2/c3d4x",
    "SECRET_FILE=/run/secrets/x1 TOKEN=/run/token1",
    "password: 12:34:56",
    "token == 'abc123def'",
    "secret=1.5s",
    "usage: login --token TOKEN [--password PASSWORD] --pass `x",
    "PASS: test_one1.sh",
    "token=(a1, b2, c3)",
    "TOKEN=",
    "password: ",
    'token: "',
    "API_KEY=...",
    "ANTHROPIC_API_KEY=sk-ant-...",
    '"secret": "<your secret 1>"',
    '"apiKey": "test", "token": "sk-test", "secret": "fake_secret_12"',
    "API_KEY=dummy TOKEN=test123 ?token=sample-key",
    "TOKEN=/path" + "/a" * 40 + "1",
]


@pytest.mark.parametrize("text", INNOCENT)
def test_what_assigns_no_secret_stays(text: str, redacted: Callable[..., str]) -> None:
    """Annotations, references, placeholders, calls, numbers, paths, prose and code."""
    assert redacted(text) == text
    assert redacted(f"{text}\nnext\n") == f"{text}\nnext\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('secret = "a\\"b\\\\" + c', 'secret = "[REDACTED:quoted-assignment]" + c'),
        ('secret = "abc\\\nd"', 'secret = "[REDACTED:quoted-assignment]\\\nd"'),
        ('secret = "abc\\', 'secret = "[REDACTED:quoted-assignment]\\'),
        ('secret = "no end\nx"', 'secret = "[REDACTED:quoted-assignment]\nx"'),
        ('secret = "' + "a" * 300 + '" x', 'secret = "[REDACTED:quoted-assignment]" x'),
        ('secret = "ab"', 'secret = "ab"'),
        ('{"secret": ") x1"}', '{"secret": "[REDACTED:quoted-assignment]"}'),
        ("secret: " + "a" * 63 + " x", "secret: " + "a" * 63 + " x"),
        ("secret: " + "a" * 64 + " x", "secret: [REDACTED:assignment] x"),
        ("secret: a2345 x", "secret: a2345 x"),
        ("secret: a23-56 x", "secret: [REDACTED:assignment] x"),
        ("SECRET=abc", "SECRET=[REDACTED:assignment]"),
        ("SECRET=ab c", "SECRET=ab c"),
        ("SECRET=abc(1)", "SECRET=abc(1)"),
        ("?secret=abc", "?secret=[REDACTED:assignment]"),
        ("SECRET=tester", "SECRET=[REDACTED:assignment]"),
        ('secret = "test1234"', 'secret = "[REDACTED:quoted-assignment]"'),
        ('\\"secret\\": \\"a\\\\b1\\", \\"b', '\\"secret\\": \\"[REDACTED:quoted-assignment]\\", \\"b'),
        ("login --secret 'x b'", "login --secret '[REDACTED:quoted-flag]'"),
        ("login --secret a1-b2c", "login --secret [REDACTED:flag]"),
    ],
)
def test_where_a_value_ends_and_what_shape_it_needs(text: str, shown: str, redacted: Callable[..., str]) -> None:
    """Quotes, escapes, lines, lengths and what comes after."""
    assert redacted(text) == shown


def test_a_prompt_is_visible_at_once_and_an_answer_is_not(redacted: Callable[..., str]) -> None:
    """The lead is committed, the value is held (contract C3)."""
    assert redacted("Password: ", end="abort") == "Password: "
    assert redacted("Password: hun", end="abort") == "Password: [REDACTED:undecided]"
    assert redacted("Password: hun") == "Password: hun"
    assert redacted("Password: hunter2x", end="abort") == "Password: [REDACTED:undecided]"
