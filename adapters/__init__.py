"""Adapters: hosts of the supervisor."""
