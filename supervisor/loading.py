"""Public names that are loaded when they are first used.

pytest imports the plugin of every installed distribution, and with it the packages around it, whether its fixtures are
used or not. So a package of ours that is only imported costs next to nothing; whoever uses a name of it pays for that.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def on_first_use(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` (PEP 562) of a package whose `homes` have its names by module."""
    home_of = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        found = getattr(importlib.import_module(f".{home_of[name]}", package), name)
        setattr(sys.modules[package], name, found)  # so that it is looked for once
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return load, names
