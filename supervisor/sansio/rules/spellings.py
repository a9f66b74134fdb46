"""Secrets that are known by what stands before them: headers, addresses, key blocks and assignments.

Their leads stay in the text and are committed at once [C3]. A marker names the spelling, since nothing else is known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .assigned import PLACEHOLDER, VALUE_BYTE, QuotedValue, UnquotedValue
from .keyblocks import KeyBlock
from .model import SHAPE_BYTES, UNDECIDED, Border, Rule, Run, RunRest, Secret
from .names import ASSIGNED, ENDING, FLAG, LOUD_ENDING, LOUD_NAME, MARK, NAME

if TYPE_CHECKING:
    from .model import Text, Undecided

LONGEST_PASSWORD: Final = 512
"""Bytes in which an address must show its `@`; what goes on longer is taken for a password."""

_DIGIT: Final = re.compile(b"[0-9]")
_USER_BYTE: Final = r"""[^\s/?#"'<>\\`|]"""
_USER_INFO: Final = re.compile(f"{_USER_BYTE}*+".encode())
_EXAMPLE_PASSWORDS: Final = frozenset((b"pass", b"pw", b"pwd", b"passwd", b"p", b"xxx"))
_FIRST: Final = r"""[^\s"'`<>|;,&(){}\[\]\\=$*%]"""
"""What an unquoted value begins with: not with a reference, a comparison or a structure."""
_SHAPED: Final = (
    rf"{_FIRST}(?:{VALUE_BYTE}{{0,{SHAPE_BYTES - 2}}}(?:[0-9]|\Z)|{VALUE_BYTE}{{{SHAPE_BYTES - 1}}})|[0-9]|\Z"
)
"""A value with a digit in what it is judged by, or one that is longer, or not there yet."""


class UrlPassword:
    """Judges what comes after `://user:`. The password reaches to the last `@` before the path (RFC 3986, 3.2.1)."""

    def judge(self, text: Text, lead: int, value: int) -> Secret | Undecided | None:  # noqa: ARG002 - see `Judge`
        """Return the password; a port has no `@` after it."""
        end = text.run(_USER_INFO, value)
        limit = value + LONGEST_PASSWORD
        if end == text.end < limit and not text.final:
            return UNDECIDED
        at = text.buffer.rfind(b"@", value, min(end, limit))
        if at < 0 and end >= limit:
            return Secret(value, end, RunRest(_USER_INFO) if end == text.end and not text.final else None)
        shown = text.buffer[value:at]
        if at <= value or shown in _EXAMPLE_PASSWORDS or PLACEHOLDER.fullmatch(shown):
            return None
        return Secret(value, at)


HEADERS: Final = (
    Rule(
        name="bearer",
        lead=r"(?i:bearer)\s{1,4}",
        value="[A-Za-z0-9._~+/=-]",
        minimum=16,
        judge=Run(re.compile(b"[A-Za-z0-9._~+/=-]*+"), 16, (_DIGIT,)),
        commits_lead=True,
        source="https://www.rfc-editor.org/rfc/rfc6750#section-2.1",
        example="Authorization: Bearer " + "abcDEF123456789012345",
        near_miss="Authorization: Bearer ${TOKEN}, bearer authentication-and-authorisation",
    ),
    Rule(
        name="authorization",
        lead=rf"(?i:authorization)(?:{MARK})?\s{{0,3}}[:=]\s{{0,3}}(?:{MARK})?(?i:basic|token|apikey|bearer)\s{{1,4}}",
        value=r"""[^\s"',\\$<{\[*%]""",
        minimum=4,
        judge=Run(re.compile(rb"""[^\s"',\\]*+"""), 4),
        commits_lead=True,
        source="https://www.rfc-editor.org/rfc/rfc9110#section-11.6.2",
        example="Authorization: Basic " + "dXNlcjpwYXNz",
        near_miss="Authorization: Basic <credentials>; the Authorization: header",
    ),
    Rule(
        name="url-password",
        lead=r"""://[^\s/?#:@"'<>\\`|]{0,128}:""",
        value=_USER_BYTE,
        minimum=1,
        ahead=rf"{_USER_BYTE}{{0,{LONGEST_PASSWORD - 1}}}(?:@|\Z)|{_USER_BYTE}{{{LONGEST_PASSWORD}}}",
        sketch=rf"{_USER_BYTE}{{0,31}}(?:@|\Z)|{_USER_BYTE}{{32}}",  # half of the time to build all rules
        judge=UrlPassword(),
        border=Border.ANY,
        commits_lead=True,
        source="https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1",
        example="postgres://app:" + "s3cr3t-pw@db.internal/app",
        near_miss="http://host:8080/ ssh://git@host:22 https://user:${PASSWORD}@host",
    ),
    Rule(
        name="private-key",
        lead="-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        value=r"[\s\S]",
        minimum=1,
        judge=KeyBlock(),
        border=Border.ANY,
        commits_lead=True,
        source="https://www.rfc-editor.org/rfc/rfc7468#section-10",
        example="-----BEGIN " + "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
        near_miss='Expected "-----BEGIN PRIVATE KEY-----" at the top of the file.',
    ),
)

_GPTME: Final = "facts of this project, part 4: names, spellings, and what must not be taken for one"

ASSIGNMENTS: Final = (
    Rule(
        name="quoted-assignment",
        lead=rf"{NAME}{ENDING}{ASSIGNED}[bfruBFRU]?{MARK}",
        value="[^\\n\"'`]",
        minimum=1,
        judge=QuotedValue(),
        border=Border.ANY,
        commits_lead=True,
        source=_GPTME,
        example='{"client_secret": "' + 'ab\\"cd ef"}',
        near_miss='password = os.environ["P"], secret: "", token="<your token>"',
    ),
    Rule(
        name="assignment",
        lead=f"{NAME}{ENDING}{ASSIGNED}",
        value=_FIRST,
        minimum=1,
        ahead=_SHAPED,
        judge=UnquotedValue(loose=False),
        border=Border.ANY,
        commits_lead=True,
        source=_GPTME,
        example="export DB_PASSWORD=" + "hunter2x",
        near_miss="token: str, password=None, API_KEY=$VAR, MAX_TOKENS=100, self.token = get_token(1)",
    ),
    Rule(
        name="assignment",
        lead=rf"(?:{LOUD_NAME}{LOUD_ENDING}=|[?&](?:[A-Za-z0-9]{{1,16}}[_.-]){{0,3}}{NAME}{ENDING}=|{FLAG}=)",
        value=_FIRST,
        minimum=3,
        judge=UnquotedValue(loose=True),
        border=Border.ANY,
        commits_lead=True,
        source=_GPTME,
        example="curl https://example.org/?user=a&password=" + "swordfish",
        near_miss="API_KEY=$VAR MAX_TOKENS=100 TOKEN=None --token=TOKEN ?token=<token>&x=1",
    ),
    Rule(
        name="quoted-flag",
        lead=rf"{FLAG}\s{{1,2}}{MARK}",
        value="[^\\n\"'`]",
        minimum=1,
        judge=QuotedValue(),
        commits_lead=True,
        source=_GPTME,
        example="login --password '" + "correct horse'",
        near_miss="login --password ''",
    ),
    Rule(
        name="flag",
        lead=rf"{FLAG}\s{{1,2}}",
        value=_FIRST,
        minimum=1,
        judge=UnquotedValue(loose=False),
        commits_lead=True,
        source=_GPTME,
        example="login --api-key " + "k9f3a77b",
        near_miss="login --token TOKEN --password required",
    ),
)
