"""The asynchronous fixture as pytest-asyncio wants it, in its strict mode too. Registered by `plugin`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio

from .plugin import make_supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import pytest

    from ..supervisor import Supervisor


@pytest_asyncio.fixture
async def _spoolvisor_supervisor_asyncio(request: pytest.FixtureRequest) -> AsyncGenerator[Supervisor]:
    async with make_supervisor(request) as made:
        yield made
