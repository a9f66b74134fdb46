"""A caller's own forms of secrets, in everything that carries text [C5, C8]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from supervisor import Rule, Supervisor, publish_text

if TYPE_CHECKING:
    from conftest import Conversation

pytestmark = pytest.mark.asyncio

OWN = Rule(
    name="acme-token",
    lead="acme_(?:live|test)_",
    value="[A-Za-z0-9]",
    minimum=16,
    source="this test",
    example="acme_live_4fQz7Lw9Xb2Np5Rt",
    near_miss="acme_live_tokens",
)
MASKED = "acme_live_[REDACTED:acme-token]"


async def test_a_rule_of_ones_own_masks_output_labels_and_arguments(conversation: Conversation) -> None:
    """Beside the pack's rules; a near miss stays, and another supervisor knows nothing of the rule."""
    text = f"{OWN.example} {OWN.near_miss} ghp_" + "a1" * 18
    async with Supervisor(conversation.path, rules=[OWN]) as supervisor:
        job = await supervisor.start(["echo", text], label=OWN.example)
        receipt = await job.wait()
        supervisor.add_secret("LATER", "hunter2sec9")
        later = await supervisor.run(["echo", OWN.example])
    masked = f"{MASKED} {OWN.near_miss} ghp_[REDACTED:github-token]"
    assert receipt.stdout == masked + "\n"
    assert receipt.command == ("echo", masked)
    assert receipt.label == MASKED
    assert later.stdout == MASKED + "\n"
    async with Supervisor() as other:
        assert (await other.run(["echo", OWN.example])).stdout == OWN.example + "\n"


async def test_a_published_text_is_masked_by_it_too(conversation: Conversation) -> None:
    """The same form of argument."""
    receipt = await publish_text(conversation.path, OWN.example, kind="tool", rules=[OWN])
    assert receipt.stdout == MASKED


@pytest.mark.parametrize("rules", [["acme_.*"], [None]])
async def test_what_is_no_rule_is_refused_at_once(rules: list[Rule]) -> None:
    """Not when the first command runs."""
    with pytest.raises(TypeError, match="Rule"):
        Supervisor(rules=rules)


async def test_an_unbounded_lead_is_refused() -> None:
    """How much is held back is computed from it."""
    with pytest.raises(ValueError, match="bounded"):
        Rule(name="x", lead="acme_.*_", value="[a-z]", minimum=8, source="", example="", near_miss="")
