"""What code decides about points."""

from __future__ import annotations

import pytest

from h2htalk.text.point_checks import decided


@pytest.mark.parametrize(
    ("check", "reply", "wanted"),
    [
        ("length:words:-3", "Well, good night.", True),
        ("length:words:-3", "Well, good night then.", False),
        ("length:words:4-", "Well, good night then.", True),
        ("length:characters:2-4", "晚安呀。", True),
        ("length:sentences:1-1", "Good night! Sleep.", False),
        ("length:lines:2-2", "one\n\ntwo\n", True),
        ("exact:Good night", '"good night."', True),
        ("exact:Good night", "Good night, you.", False),
        ("exact:晚安", "（挥手）**晚安。**", True),
        ("length:words:-3", "(nods softly)\nWell, good night.", True),
        ("length:words:-4", "(nods)", None),
        ("length:lines:2-2", "(nods).\nA\nB", True),
        ("fact:cat", "It was Pip.", None),
        ("help_lines", "Call 988.", None),
        (None, "Call 988.", None),
    ],
)
def test_code_decides_stated_lengths_and_exact_forms_alone(check: str | None, reply: str, wanted: bool | None) -> None:
    assert decided(reply, check) is wanted
