"""A plug-in for gptme: its background jobs and its saved outputs on spoolvisor, without any change to gptme.

gptme finds it by the entry point `spoolvisor` of the group `gptme.plugins`; nobody has to import it.
"""

from __future__ import annotations

from .names import UnsupportedGptme
from .plugin import install, manifest

__all__ = ["UnsupportedGptme", "install", "manifest"]
