"""What Argilla's page shows of an item: our own HTML, and an item's data in a form that stays text there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.rounds.items import Item
from h2htalk.rounds.texts.interface import label_text, word

PAGE_WORDS = (
    "user", "companion", "reply_to_judge", "proposed_reply", "crisis_notice", "show_text", "note", "choose_between",
    "discard_skips", "help_in_guidelines",
)  # fmt: skip


@cache
def page(language: Language) -> str:
    """The HTML that shows an item of a language to an annotator."""
    template = (files("h2htalk.rounds.argilla") / "page.html").read_text(encoding="utf-8")
    words = {name: word(name, language) for name in PAGE_WORDS}
    return template.replace("LANGUAGE", language).replace('"WORDS"', inert_json(words))


def inert_json(value: object) -> str:
    """JSON that stays text inside a script: Argilla's page pastes it there unescaped, by a text replacement.

    `<` would end the script, and `$` and `#` would act on the replacement.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r"[<>&$#'`\u2028\u2029\x7f]", lambda sign: f"\\u{ord(sign[0]):04x}", text)


def item_data(item: Item, language: Language, titles: Mapping[str, str]) -> dict[str, Any]:
    """What the page needs of an item; what is empty is left out."""
    data = {
        "turns": [turn.to_dict() for turn in item.turns],
        "context": [[titles.get(name, name), text] for name, text in item.context],
        "response": item.response,
        "reference": item.reference,
        "labels": [label_text("label", label, language) for label in item.labels],
        "crisis": item.crisis,
        "note": item.note,
    }
    return {key: value for key, value in data.items() if value}
