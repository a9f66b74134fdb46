"""The pytest plugin: installing spoolvisor is enough to use its fixtures.

pytest imports this module in every run, so it imports nothing that costs time: what a fixture needs is loaded when the
fixture is used. The one fixture that is asynchronous is offered to the plugin that runs the test, whichever it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from ..supervisor import Supervisor
    from .fake_children import FakeChildren
    from .virtual_clock import VirtualClock


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-asyncio run the asynchronous fixture, if it is there; anyio takes any that is asynchronous."""
    if config.pluginmanager.hasplugin("asyncio"):
        from . import _asyncio_fixtures  # noqa: PLC0415 - it imports pytest_asyncio

        config.pluginmanager.register(_asyncio_fixtures, "spoolvisor-asyncio")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail the test itself, and not its teardown, for a command that was or was not started."""
    __tracebackhide__ = True  # nor show this file, which says nothing
    result = yield
    arguments: dict[str, Any] = getattr(item, "funcargs", {})  # only a function has them, not a doctest
    children: FakeChildren | None = arguments.get("fake_children")
    if children is not None:
        children.check()
    return result


@pytest.fixture
def capture_dir(tmp_path: Path) -> Path:
    """The conversation's directory of the `supervisor` fixture: new, empty and private."""
    directory = tmp_path / "captures"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """A clock that the test moves; `supervisor` and `fake_children` go by it in a test that asks for it."""
    from .virtual_clock import VirtualClock  # noqa: PLC0415 - see the module's docstring

    return VirtualClock()


@pytest.fixture
def fake_children(request: pytest.FixtureRequest) -> FakeChildren:
    """What the test's commands are played by; after the test, all that were expected must have been started."""
    from .fake_children import FakeChildren  # noqa: PLC0415 - see the module's docstring

    return FakeChildren(clock=_wanted(request, "virtual_clock"))


@pytest.fixture
def supervisor(request: pytest.FixtureRequest) -> Supervisor:
    """An open supervisor of `capture_dir`, closed after the test, without syncs.

    It starts real commands, unless the test asks for `fake_children` too.
    """
    if "anyio_backend" in request.fixturenames:
        return _made(request, "anyio")
    if request.config.pluginmanager.hasplugin("spoolvisor-asyncio"):
        return _made(request, "asyncio")
    pytest.fail("the `supervisor` fixture needs an asynchronous test: pytest-asyncio or anyio runs one", pytrace=False)


@pytest.fixture
async def _spoolvisor_supervisor_anyio(request: pytest.FixtureRequest) -> AsyncGenerator[Supervisor]:
    backend = request.getfixturevalue("anyio_backend")
    if (backend if isinstance(backend, str) else backend[0]) != "asyncio":
        pytest.skip("spoolvisor runs on asyncio and uvloop")
    async with make_supervisor(request) as made:
        yield made


def make_supervisor(request: pytest.FixtureRequest) -> Supervisor:
    """Return the supervisor of a test, not entered."""
    from ..supervisor import Supervisor  # noqa: PLC0415 - see the module's docstring

    children = _wanted(request, "fake_children")
    return Supervisor(
        request.getfixturevalue("capture_dir"),
        durability="none",
        spawn=None if children is None else children.spawn,
        clock=_wanted(request, "virtual_clock"),
    )


def _made(request: pytest.FixtureRequest, framework: str) -> Supervisor:
    made: Supervisor = request.getfixturevalue(f"_spoolvisor_supervisor_{framework}")
    return made


def _wanted(request: pytest.FixtureRequest, name: str) -> Any:  # noqa: ANN401 - the fixture's own
    """Return a fixture if the test asks for it, itself or through another one."""
    return request.getfixturevalue(name) if name in request.fixturenames else None
