"""The command line. One module per group of commands; what people read goes to stderr, what programs read to stdout."""

from __future__ import annotations

from .entry import main

__all__ = ["main"]
