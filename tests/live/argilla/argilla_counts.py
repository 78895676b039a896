"""Decisions checked by a count of their own, which shares nothing with the code that decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from h2htalk.data.files import read_jsonl
from h2htalk.rounds.round_folder import RoundFolder


def check_counts(round: RoundFolder, said: Mapping[tuple[str, str, str], Any]) -> None:
    """The decisions on labels are those of a plain count of what was said: the one label that leads, or an open tie."""
    labelled = [question.name for question in round.questions() if question.form == "label"]
    counts: dict[tuple[str, str], Counter[str]] = {
        (item.id, name): Counter() for item in round.items() for name in labelled
    }
    for (item, _, question), value in said.items():
        if question in labelled:
            counts[item, question][value] += 1
    decided = {
        (one["item"], one["question"]): one
        for _, one in read_jsonl(round.path / "decisions.jsonl")
        if one["question"] in labelled
    }
    assert decided.keys() == counts.keys()
    for key, count in counts.items():
        one, most = decided[key], max(count.values())
        leading = {label for label, number in count.items() if number == most}
        assert (one["support"], one["votes"]) == (most, count.total())
        if len(leading) == 1:
            assert (one["rule"] in ("majority", "one more annotation"), {one["label"]}) == (True, leading)
        else:
            assert (one["rule"], one["label"], set(one["tied"])) == ("tie", None, leading)
    hows = Counter(one["rule"] for one in decided.values())
    print(f"{round.name}: {dict(hows)} as counted")
