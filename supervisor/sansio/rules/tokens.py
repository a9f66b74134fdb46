"""Formats of tokens that are known by their beginning.

The lead stays visible, so that a reader sees what kind of token was there; a JSON Web Token goes as a whole, since
its first part has no fixed text beyond three characters. Minimums are below the documented lengths, because lengths
have grown before; where a beginning occurs in prose (`sk-`), the value must look generated.

Examples are written in two parts, so that the source of this module contains no token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .model import UNDECIDED, Rule, Run, RunRest, Secret

if TYPE_CHECKING:
    from .model import Text, Undecided

_GITHUB: Final = (
    "https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github"
)
_GITLAB: Final = "https://docs.gitlab.com/security/tokens/#token-prefixes"
_AWS: Final = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids"
_DASHED: Final = re.compile(b"[A-Za-z0-9_-]*+")
_DIGIT: Final = re.compile(b"[0-9]")
_UPPER: Final = re.compile(b"[A-Z]")
_LONGEST_HEADER: Final = 1024
"""Characters of a token's first part; those of real tokens are below 200."""


@dataclass(frozen=True, slots=True)
class WebToken:
    """Judges a JSON Web Token from its first characters, `eyJ` (base64url of `{"`), to the end of its last part."""

    least: int = 8
    """Characters that the second part has at least."""

    def judge(self, text: Text, lead: int, value: int) -> Secret | Undecided | None:
        """Return the whole token once its second part is long enough; the others may be empty (RFC 7519, 6.1)."""
        dot = text.run(_DASHED, value)
        if dot - value > _LONGEST_HEADER:
            return None
        if dot == text.end:
            return None if text.final else UNDECIDED
        if text.buffer[dot] != ord("."):
            return None
        payload = dot + 1
        end = text.run(_DASHED, payload)
        if end - payload < self.least:
            return UNDECIDED if end == text.end and not text.final else None
        stop = text.run(_TOKEN_PARTS, payload)
        return Secret(lead, stop, RunRest(_TOKEN_PARTS) if stop == text.end and not text.final else None)


_TOKEN_PARTS: Final = re.compile(b"[A-Za-z0-9_.=-]*+")

TOKENS: Final = (
    Rule(
        name="anthropic-key",
        lead="sk-ant-",
        value="[A-Za-z0-9_-]",
        minimum=16,
        judge=Run(re.compile(b"[A-Za-z0-9_-]*+"), 16, (_DIGIT,)),
        source="https://docs.claude.com/en/api/overview#authentication",
        example="sk-" + "ant-api03-AbCdEfGh0123456789-AbCdEfGh0123456789_AA",
        near_miss="export ANTHROPIC_API_KEY=sk-ant-...",
    ),
    Rule(
        name="openai-key",
        lead="sk-",
        value="[A-Za-z0-9_-]",
        minimum=20,
        judge=Run(re.compile(b"[A-Za-z0-9_-]*+"), 20, (_DIGIT, _UPPER), b"ant-"),
        source="https://platform.openai.com/docs/api-reference/authentication",
        example="sk-" + "proj-AbCdEfGh0123456789AbCdEfGh",
        near_miss="sk-estimator-doc-link-label-item risk-Adjusted0123456789-Adjusted",
    ),
    Rule(
        name="github-token",
        lead="(?:gh[pousr]_|github_pat_)",
        value="[A-Za-z0-9_]",
        minimum=20,
        source=_GITHUB,
        example="ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8",
        near_miss="a name beginning with ghp_ or github_pat_, and high_resolution_timer_of_this_machine",
    ),
    Rule(
        name="gitlab-token",
        lead="gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-",
        value="[A-Za-z0-9_.-]",
        minimum=20,
        judge=Run(re.compile(b"[A-Za-z0-9_.-]*+"), 20, (_DIGIT,)),
        source=_GITLAB,
        example="glpat-" + "xYz9876543210AbCdEfG",
        near_miss="glpat-your-own-personal-token",
    ),
    Rule(
        name="slack-token",
        lead="xox[abeoprs]-",
        value="[A-Za-z0-9-]",
        minimum=10,
        judge=Run(re.compile(b"[A-Za-z0-9-]*+"), 10, (_DIGIT,)),
        source="https://docs.slack.dev/authentication/tokens",
        example="xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
        near_miss="tokens that begin with xoxb- or xoxp-not-a-token",
    ),
    Rule(
        name="slack-app-token",
        lead="xapp-",
        value="[A-Za-z0-9-]",
        minimum=16,
        judge=Run(re.compile(b"[A-Za-z0-9-]*+"), 16, (_DIGIT,)),
        source="https://docs.slack.dev/authentication/tokens",
        example="xapp-" + "1-A0123456789-1234567890123-0123456789abcdef",
        near_miss="xapp-level-tokens-of-an-app",
    ),
    Rule(
        name="slack-webhook",
        lead="hooks\\.slack\\.com/(?:services|workflows|triggers)/",
        value="[A-Za-z0-9/]",
        minimum=20,
        commits_lead=True,
        source="https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks",
        example="https://hooks.slack.com/services/" + "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        near_miss="https://hooks.slack.com/services/...",
    ),
    Rule(
        name="aws-key-id",
        lead="(?:AKIA|ASIA|ABIA|ACCA)",
        value="[A-Z0-9]",
        minimum=16,
        source=_AWS,
        example="AKIA" + "IOSFODNN7EXAMPLE",
        near_miss="AKIA and ASIA0123 are no identifiers",
    ),
    Rule(
        name="google-key",
        lead="AIza",
        value="[A-Za-z0-9_-]",
        minimum=30,
        source="https://cloud.google.com/docs/authentication/api-keys",
        example="AIza" + "SyA0123456789abcdefghijklmnopqrstuv",
        near_miss="AIzaSy is how they begin",
    ),
    Rule(
        name="google-oauth",
        lead="(?:ya29\\.|GOCSPX-)",
        value="[A-Za-z0-9_-]",
        minimum=20,
        judge=Run(re.compile(b"[A-Za-z0-9_-]*+"), 20, (_DIGIT,)),
        source="https://developers.google.com/identity/protocols/oauth2#size",
        example="ya29." + "a0AfH6SMBx0123456789abcdefghijkl",
        near_miss="ya29.short GOCSPX-...",
    ),
    Rule(
        name="stripe-key",
        lead="[rs]k_(?:live|test)_",
        value="[A-Za-z0-9]",
        minimum=16,
        source="https://docs.stripe.com/keys",
        example="sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc",
        near_miss="sk_test_mode_is_on disk_live_0123456789abcdef",
    ),
    Rule(
        name="stripe-webhook",
        lead="whsec_",
        value="[A-Za-z0-9+/=]",
        minimum=20,
        source="https://docs.stripe.com/webhooks/signature",
        example="whsec_" + "AbCdEfGh0123456789AbCdEfGh012345",
        near_miss="whsec_...",
    ),
    Rule(
        name="npm-token",
        lead="npm_",
        value="[A-Za-z0-9]",
        minimum=30,
        source="https://docs.npmjs.com/about-access-tokens",
        example="npm_" + "AbCdEfGh0123456789AbCdEfGh0123456789",
        near_miss="npm_config_registry npm_lifecycle_event",
    ),
    Rule(
        name="pypi-token",
        lead="pypi-Ag",
        value="[A-Za-z0-9_-]",
        minimum=30,
        source="https://pypi.org/help/#apitoken",
        example="pypi-" + "AgEIcHlwaS5vcmcCJGFiY2RlZmdoLTAxMjMtNDU2Ny04OWFi",
        near_miss="pypi-Agent of some-package",
    ),
    Rule(
        name="docker-token",
        lead="dckr_(?:pat|oat)_",
        value="[A-Za-z0-9_-]",
        minimum=20,
        source="https://docs.docker.com/security/access-tokens/",
        example="dckr_" + "pat_AbCdEfGh0123456789-AbCdEfG",
        near_miss="dckr_pat_ is how they begin",
    ),
    Rule(
        name="hugging-face-token",
        lead="hf_",
        value="[A-Za-z0-9]",
        minimum=30,
        judge=Run(re.compile(b"[A-Za-z0-9]*+"), 30, (_UPPER,)),
        source="https://huggingface.co/docs/hub/security-tokens",
        example="hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
        near_miss="hf_hub_download hf_thisisonelongnameoflowercaseletters",
    ),
    Rule(
        name="jwt",
        lead="eyJ",
        value="[A-Za-z0-9_-]",
        minimum=8,
        judge=WebToken(),
        source="https://www.rfc-editor.org/rfc/rfc7519",
        example="eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcDEF123-_x",
        near_miss="eyJhbGciOiJIUzI1NiJ9 and nothing after it",
    ),
)
"""In the order that decides a name where two begin at one place."""
