"""Leaked prompts, noise and other languages are found; ordinary text with the same words is not."""

from __future__ import annotations

import pytest
from tables import table

from h2htalk.curation.safety.content_rules import find_unusable_content
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn

KIND = "It was a long day at work, but my sister called and we laughed a lot about the old times."


def found(user: str, companion: str = KIND, language: Language = "en", system: str = "") -> set[str]:
    turns = (Turn("user", user), Turn("companion", companion))
    return {one.category for one in find_unusable_content(Dialogue("d", language, turns, metadata={"system": system}))}


@pytest.mark.parametrize(("user", "companion", "leak"), table("curation", "leaked_prompts"))
def test_leaked_prompts_and_instructions(user: str, companion: str, leak: str | None) -> None:
    assert found(user, companion) == ({f"prompt_leak.{leak}"} if leak else set())


def test_form_repeated_prompts_and_encouragement() -> None:
    assert found("...") == {"too_short"}
    assert "wrong_language" in found("我今天很难过，因为和妈妈吵架了，不知道该怎么办，你能陪我聊聊吗，我真的很想有人听")
    assert "wrong_language" in found(KIND, KIND, language="zh")
    assert "irrelevant.repeated" in found("buy now " * 200)
    repeated = Dialogue("d", "en", tuple(Turn(r, "same words here") for r in ("user", "companion") * 4))
    assert "irrelevant.repeated" in {one.category for one in find_unusable_content(repeated)}
    assert "irrelevant.noise" in found("ab " + "#$%^&*" * 12)
    assert not found("I can't, I can't, I can't. I just can't.")
    # The system prompt repeated by the companion.
    system = "You are Nora, a warm listener who never gives medical advice and always asks one question at the end."
    reply = "Sure: you are Nora, a warm listener who never gives medical advice and always asks one question."
    assert "prompt_leak.system" in found("Who are you?", reply, system=system)
    assert not found("Who are you?", "I'm Nora, and I like to listen.", system=system)
    # Encouragement by the companion.
    assert "crisis.encouragement" in found("I want to die", "Then go kill yourself")
    assert not found("They told me to go kill yourself", "Nobody should ever hear that. I'm with you.")


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Hoy me siento muy solo y no sé con quién hablar, mi jefe me gritó otra vez.", {"wrong_language"}),
        ("en", "asdkjh qwoeiu zxmcnb lkjsdf poiqwe mnbzxc fjdksl fjdksla ghghgh tyuier", {"irrelevant.noise"}),
        ("en", '<div class="post"><p>I slept badly.</p><br/><a href="/x">more</a></div>', {"irrelevant.noise"}),
        ("en", "ngl ive been cryin all nite lmao, she said she dont love me no more n idk wat 2 do", set()),
        ("en", "i love u <3 but 2 < 3 and that's <b>it</b>, I told him so yesterday evening", set()),
        ("zh", "老闆當著大家的面罵我，我躲到廁所哭了，點解佢都唔覆我，我好唔開心", set()),
    ],
)
def test_the_language_is_identified(language: Language, text: str, expected: set[str]) -> None:
    reply = {"en": KIND, "zh": "听起来真的很不容易，愿意多说说吗？我会一直在这里陪着你，慢慢来就好。"}[language]
    assert found(text, reply, language) == expected
