"""Secrets that are known by their form: the rule pack and what a caller needs to add rules (contract C5).

`DEFAULT_RULES` is the pack. `DEFAULT_RULES.with_rules([Rule(...)])` has a caller's own as well; see `Rule` for what a
rule consists of and what is refused. No rule is a promise that there are no other secrets (contract C9).
"""

from __future__ import annotations

from typing import Final

from .model import Border, Rule, RuleSet
from .spellings import ASSIGNMENTS, HEADERS
from .tokens import TOKENS

DEFAULT_RULES: Final = RuleSet((*TOKENS, *HEADERS, *ASSIGNMENTS))
NO_RULES: Final = RuleSet(())

__all__ = ["DEFAULT_RULES", "NO_RULES", "Border", "Rule", "RuleSet"]
