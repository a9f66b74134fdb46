"""Benches: this code beside its peers, in turn, in the same run. `python -m bench` from the repository's root."""

from __future__ import annotations
