"""What a page of Label Studio says, apart from how it looks: two layouts of the same texts are equal.

An open round keeps the pages of the version that opened it, which is no change on the server.
"""

from __future__ import annotations

import html
import re
from functools import cache

from h2htalk.data.languages import Language
from h2htalk.rounds.texts.interface import interface_text
from h2htalk.text.help_lines import read_help_lines

_TAG = re.compile(r"<[^>]*>")
# Attributes of a labelling configuration that say what is asked and which answers there are.
_MEANING = re.compile(
    r'\b(name|toName|value|alias|hint|choice|required|visibleWhen|whenTagName|whenChoiceValue)="([^"]*)"'
)
# Texts of a notice, in this and in earlier versions.
_NOTICES = (
    "crisis_notice",
    "explicit_notice",
    "label_studio_skips",
    "help_in_guidelines",
    "more_help_in_guidelines",
)


def lines_of_item(field: object, language: Language) -> object:
    """Return the lines of text in the HTML of a task, without those of its notice; another value as it is."""
    if not isinstance(field, str):
        return field
    texts = (html.unescape(part).strip() for part in _TAG.sub("\n", field).split("\n"))
    notices = _notice_lines(language)
    return [text for text in texts if text and text not in notices]


def comparable_setting(name: str, value: object) -> object:
    """Return what a setting of a project means: of a configuration questions and choices, of guidelines the text."""
    if not isinstance(value, str):
        return value
    if name == "label_config":
        return _MEANING.findall(value)
    if name == "expert_instruction":
        return "".join(html.unescape(_TAG.sub(" ", value)).split())
    return value


@cache
def _notice_lines(language: Language) -> frozenset[str]:
    directory = read_help_lines()
    rows = {directory.overview_row(code, language)[0] for code in directory.by_code}
    rows |= {row for row, _ in directory.overview(language)}
    return frozenset(rows | {interface_text(name, language) for name in _NOTICES})
