"""An item on Argilla's page: its record id, its data, and the HTML that displays it."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.rounds.items import Item
from h2htalk.rounds.texts.interface import interface_text, label_text, passage_title
from h2htalk.text.escaping import printable, printable_lines

# The only field of a record: an item as JSON, which the page displays.
FIELD = "item"
PAGE_TEXTS = (
    "user", "companion", "reply_to_judge", "proposed_reply", "crisis_notice", "explicit_notice", "show_text", "note",
    "choose_between", "discard_skips", "help_in_guidelines",
)  # fmt: skip


def record_id(item: str, salt: bytes) -> str:
    """Return an item's id on the server, 32 hexadecimal digits: annotators can read it, and item ids reveal labels."""
    return hmac.new(salt, b"record " + item.encode(), hashlib.sha256).hexdigest()[:32]


def record_ids(items: Iterable[str], salt: bytes) -> dict[str, str]:
    """Return record id -> item id."""
    return {record_id(item, salt): item for item in items}


@cache
def page(language: Language) -> str:
    """Return the HTML that displays an item in one language."""
    template = (files("h2htalk.rounds.argilla") / "page.html").read_text(encoding="utf-8")
    texts = {name: interface_text(name, language) for name in PAGE_TEXTS}
    return template.replace("LANGUAGE", language).replace('"TEXTS"', inert_json(texts))


def inert_json(value: object) -> str:
    """Return JSON that is safe inside a script: Argilla inserts it unescaped, by a text replacement.

    `<` could end the script, and `$` and `#` have a meaning in the replacement.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r"[<>&$#'`\u2028\u2029\x7f]", lambda match: f"\\u{ord(match[0]):04x}", text)


def item_data(item: Item, language: Language) -> dict[str, Any]:
    """Return the item's data for the page, without empty fields; control and invisible characters are escaped."""
    data = {
        "turns": [{"role": turn.role, "content": printable_lines(turn.content)} for turn in item.turns],
        "context": [[printable(passage_title(name, language)), printable_lines(text)] for name, text in item.context],
        "response": printable_lines(item.response),
        "reference": printable_lines(item.reference),
        "labels": [label_text("label", label, language) for label in item.labels],
        "crisis": item.crisis,
        "explicit": item.explicit,
        "note": printable_lines(item.note),
    }
    return {key: value for key, value in data.items() if value}


def displayed(item: Item) -> dict[str, str]:
    """Return the field of an item's record, which the page displays."""
    return {"data": inert_json(item_data(item, item.language))}
