"""Reports of what is known by its form: code that was taken for a secret, key blocks, and patterns that never end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from supervisor.sansio.engines.stdlib import engine_for
from supervisor.sansio.needles import NeedleSet
from supervisor.sansio.sanitizer import Sanitizer

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK: Final = 64 * 1024
NOTHING: Final = NeedleSet.build({})
BEGIN: Final = "-----BEGIN RSA " + "PRIVATE KEY-----"
END: Final = "-----END RSA " + "PRIVATE KEY-----"
BODY: Final = "\n".join(f"MIIEowIBAAKCAQEA0123456789abcdefABCDEF+/MIIEowIBAAKCAQEA0123{line:03}" for line in range(5))


@pytest.mark.parametrize(
    "text",
    [
        "MAX_TOKENS=100",
        "export MAX_TOKENS=8_192; max_tokens: 4096, 'token_count': 12",
        '"apiKey": "test"',
        "{'api_key': 'sk-test', 'password': 'dummy', 'token': 'test-token-1', 'secret': 'fake_secret'}",
        "API_KEY=test SECRET=dummy123 curl https://localhost/?token=fake",
        "${{ secrets.X }}",
        'token: ${{ secrets.GITHUB_TOKEN }}, "apiKey": "${{ secrets.X }}"',
        "postgres://user:test@localhost/db",
    ],
)
def test_red_036_benign_values_stay_as_they_are(masked: Callable[..., str], text: str) -> None:
    """RED-036 (NousResearch/hermes-agent#15934, #33801): limits, fillings and references were rewritten (C5, C9)."""
    assert masked({}, text) == text
    secrets = 'API_KEY=t7Rw-q9 "apiKey": "testing-k3Lp" postgres://user:tester@localhost/db'
    assert masked({}, secrets).count("[REDACTED:") == 3


@pytest.mark.parametrize(
    "text",
    [
        "if let token = timeObserverToken",
        "let token = NotificationCenter.default.addObserver(forName: name, object: nil)",
        "guard let secret = keychain.secret2 else { return }",
        "self.accessToken = response.data.accessToken",
        "const password = form.password;",
        "token = next_token(1)",
        "private_key: RsaKey",
    ],
)
def test_red_042_a_name_that_is_assigned_is_no_secret(masked: Callable[..., str], text: str) -> None:
    """RED-042 (openclaw/openclaw#127640): identifiers were rewritten in code; unquoted, a value needs a shape (C5)."""
    assert masked({}, text) == text
    assert masked({}, "if let token = k9f3a77bQz") == "if let token = [REDACTED:assignment]"


@pytest.mark.parametrize(
    "after", ['" in text:\n    return 1\n', "`.\n\nMore text.\n", "\nnot base64, but prose\n", "\n\n\n"]
)
def test_red_052_a_lone_header_is_a_mention(masked: Callable[..., str], after: str) -> None:
    """RED-052 (AlexanderMattTurner/agent-sanitizer#187): a header in a source hid the rest of the file (C5)."""
    text = f'if "{BEGIN}{after}def test_it():\n    assert header\n'
    assert masked({}, text) == text
    cut = masked({}, f"{BEGIN}\n{BODY}\nall that follows is prose\n")
    assert cut == f"{BEGIN}[REDACTED:private-key]\nall that follows is prose\n"


@pytest.mark.parametrize("indent", ["", "    ", "> "])
def test_red_053_headers_and_a_blank_line_lead_to_the_body(masked: Callable[..., str], indent: str) -> None:
    """RED-053 (BerriAI/litellm#29149): a blank line after `DEK-Info` ended the redaction, the body leaked (C5)."""
    lines = [BEGIN, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC,0123456789ABCDEF", "", *BODY.splitlines(), END]
    text = masked({}, "".join(f"{indent}{line}\n" for line in lines) + "bye\n")
    assert text == f"{indent}{BEGIN}[REDACTED:private-key]{END}\nbye\n"


def seconds(text: bytes) -> float:
    """Return the least time of three that the engine on the standard library takes for a text in chunks."""
    best: list[float] = []
    for _ in range(3):
        sanitizer = Sanitizer(NOTHING, engine=engine_for(NOTHING))
        began = time.process_time()
        for start in range(0, len(text), CHUNK):
            sanitizer.feed(text[start : start + CHUNK], bulk=True)
            assert sanitizer.held < 1300
        sanitizer.finish()
        best.append(time.process_time() - began)
    return min(best)


@pytest.mark.parametrize("before", ["", "secret: ", 'token = "'])
@pytest.mark.parametrize("unit", ["a.", "api_key.secret.", "--a-a-a-", "password_key_"])
def test_red_038_long_runs_of_names_take_linear_time(before: str, unit: str) -> None:
    """RED-038 (NousResearch/hermes-agent#76083): nested quantifiers on dotted keys took exponential time (B3, C4)."""
    small, large = (seconds(f"{before}{unit * (size // len(unit))}= ".encode()) for size in (CHUNK, 4 * CHUNK))
    assert large < 9 * small + 0.05


@pytest.mark.parametrize(
    ("before", "unit", "after"),
    [("{", '"k": "v", ', '"type": "service_accoun'), ("", '"token": "', ""), (f"{BEGIN}\\n", "ab, ", "-----EN")],
)
def test_red_039_a_near_miss_of_megabytes_takes_linear_time(before: str, unit: str, after: str) -> None:
    """RED-039 (BerriAI/litellm#32353): JSON that was nearly a service account's held the loop up for minutes (B3)."""
    small, large = (seconds((before + unit * (size // len(unit)) + after).encode()) for size in (4 * CHUNK, 32 * CHUNK))
    assert large < 18 * small + 0.05
