"""What figures say to those who do not see them."""

from __future__ import annotations

from h2htalk.analysis.alt_texts import SAID, clear_differences, medians, most_frequent
from h2htalk.analysis.comparison import comparison
from h2htalk.analysis.lengths import measure_lengths
from h2htalk.analysis.texts import SideText


def test_the_first_items_are_named_with_their_counts() -> None:
    assert most_frequent([("tea", 1200), ("walk", 3)]) == "Most frequent: tea 1,200, walk 3."
    assert most_frequent((f"w{n}", 1) for n in range(99)).count(",") == SAID - 1
    assert most_frequent([]) == "There are none."


def test_differences_that_stand_are_named_each_way() -> None:
    same = {f"word{n}": 50 for n in range(40)}
    compared = comparison("words", "response", "en", {**same, "rain": 300}, {**same, "sun": 300})
    assert clear_differences(compared, "mini", "mine") == " More in mini: rain. More in mine: sun."
    assert clear_differences(comparison("words", "response", "en", same, same), "mini", "mine") == ""


def test_lengths_by_group_are_told_by_their_ends() -> None:
    texts = [
        SideText(f"{emotion}-{n}", "dialogue_base", "en", emotion, "response", "tea " * words)
        for emotion, words in (("joy", 3), ("calm", 9), ("fear", 5))
        for n in range(2)
    ]
    said = medians(measure_lengths(texts).summaries, "emotion", {"response": "answers"})
    assert said == "Medians of the answers go from joy 3 to calm 9."
