"""Credential names and the spellings in which something is assigned to them, as bounded patterns.

The names are those of `needles.credential_values` that can be told from ordinary words in running text. A name may be a
part of a longer one (`PGPASSWORD`, `client_secret`, `dbPassword`), and a few endings may follow it.
"""

from __future__ import annotations

from typing import Final

_KEYS: Final = "(?:api|access|private|auth|encryption|signing|account|client|master|shared|session)[_-]?key"
NAME: Final = (
    f"(?i:pass(?:word|wd|phrase|code)s?|secrets?|token|{_KEYS}|credentials?|[_-]pwd|[_-]pass|sshpass|authorization)"
)
ENDING: Final = "(?i:[_-]?(?:key|key_base|value|string|b64|base64|prod|dev|test|live|staging|[0-9]{1,3})){0,2}"
LOUD_NAME: Final = (
    "(?:PASS(?:WORD|WD|PHRASE|CODE)?S?|_PWD|SECRETS?|TOKEN|CREDENTIALS?"
    "|(?:API|ACCESS|PRIVATE|AUTH|ENCRYPTION|SIGNING|ACCOUNT|CLIENT|MASTER|SHARED|SESSION)_?KEY)"
)
LOUD_ENDING: Final = "(?:_?(?:KEY|KEY_BASE|VALUE|STRING|B64|BASE64|PROD|DEV|TEST|LIVE|STAGING|[0-9]{1,3})){0,2}"
"""The same for variables of an environment, where `PASS` stands for itself and `PWD` is a directory."""
MARK: Final = r"""\\?["'`]"""
"""A quotation mark, behind a backslash where the whole text is quoted itself."""
_ANNOTATION: Final = "(?:: ?(?:str|string|String) ?)?"
ASSIGNED: Final = rf"(?:{MARK})?\]?\s{{0,8}}{_ANNOTATION}(?:=>?|:=?)\s{{0,8}}"
"""`=` of shells, TOML and Python, `:` of JSON and YAML, `=>` of Ruby and PHP, `:=` of Go and make; `env["TOKEN"] =`."""
FLAG: Final = (
    "--(?:[a-z0-9]{1,16}-){0,3}(?:password|passwd|passphrase|pass|secret|token|(?:api|access|auth|private)-?key)"
)
