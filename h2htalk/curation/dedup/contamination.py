"""Decontamination: find dialogues that contain an item of a split.

The inputs of an item are the user turns of its history, and each of its other texts; each of its references is one
reply. They are searched in every run of as many turns of the same speaker, so that an item extracted from the middle of
a dialogue is found: equal runs by their text, similar ones by the shingles that distinguish the texts of a split.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from h2htalk.curation.dedup.compared_texts import lengths, plain, shingle_hashes, similarity, unique_values
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import ROLES, Dialogue, Role, Scenario, Turn
from h2htalk.data.splits import Split

# A shingle in more texts than this (or, in large splits, in more than one of so many) tells little about any of them.
# For each text the rarest shingles count all the same, however common they are.
_COMMON, _COMMON_ONE_IN = 50, 500
_RAREST = 16
_LEAST_OVERLAP = 0.1  # of a text's shingles; 15 % edited characters leave 0.38 of them


@dataclass(frozen=True, slots=True)
class ItemText:
    """A text of a split's item: `turns` lines, which a speaker may have said in as many turns."""

    split: str
    item: str
    language: Language
    on: Literal["inputs", "reference"]
    role: Role
    turns: int
    text: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.split, self.item, self.on


class SplitIndex:
    """The texts of splits by their words and by their shingles, for one least similarity."""

    def __init__(self, splits: Iterable[Split], least: float) -> None:
        """`least`: the least similarity (0 to 1) to an item."""
        self._least = least
        # Equal texts are stored once, for the first item by split and id.
        self._equal: dict[Language, dict[tuple[Role, int, str], ItemText]] = {name: {} for name in LANGUAGES}
        all_texts = [
            text for split in splits for scenario in split.scenarios for text in item_texts(split.name, scenario)
        ]
        for text in sorted(all_texts, key=lambda text: text.key):
            self._equal[text.language].setdefault((text.role, text.turns, text.text), text)
        self._runs = {
            language: sorted({(role, turns) for role, turns, _ in texts}) for language, texts in self._equal.items()
        }
        self._postings: list[tuple[Language, Role, _Postings]] = []
        for language, texts in self._equal.items():
            for role in ROLES:
                for is_long, scale in enumerate(lengths(language).scales):
                    held = [
                        text
                        for text in texts.values()
                        if text.role == role and (len(text.text) >= lengths(language).long_item) == is_long
                    ]
                    if held:
                        self._postings.append((language, role, _Postings(held, scale.width)))

    def find(self, dialogues: Sequence[Dialogue]) -> list[dict[str, object] | None]:
        """The evidence of the most similar item in each dialogue (ties by split and id); None without any."""
        return [self._best(dialogue) for dialogue in dialogues]

    def _best(self, dialogue: Dialogue) -> dict[str, object] | None:
        """Exact copies are found without shingles."""
        language = dialogue.language
        spoken: dict[Role, list[str]] = {role: [] for role in ROLES}
        for role, line in _lines(dialogue.messages, language):
            spoken[role].append(line)
        found = [
            (1.0, text)
            for role, turns in self._runs[language]
            for run in _runs(spoken[role], turns)
            if (text := self._equal[language].get((role, turns, run)))
        ]
        for wanted, role, postings in self._postings:
            for text in postings.likely(spoken[role]) if wanted == language else ():
                similar = max(
                    # A message may contain the text and more.
                    1.0 if text.text in run else similarity(text.text, run, self._least)
                    for run in _runs(spoken[role], text.turns)
                )
                found += [(similar, text)] if similar >= self._least else []
        if not found:
            return None
        similar, of = min(found, key=lambda one: (-one[0], one[1].key))
        return {"of": of.item, "split": of.split, "on": of.on, "similarity": round(similar, 4)}


def item_texts(split: str, scenario: Scenario) -> list[ItemText]:
    """The compared texts of an item."""
    language = scenario.language
    lines = [text for turn, text in _lines(scenario.turns, language) if turn == "user"]
    texts = [ItemText(split, scenario.id, language, "inputs", "user", len(lines), "\n".join(lines))]
    for name, value in scenario.inputs.items():
        if name == "history":
            continue
        words = [value] if isinstance(value, str) else [str(getattr(v, "activity", v)) for v in value]
        texts.append(ItemText(split, scenario.id, language, "inputs", "user", 1, plain(" ".join(words), language)))
    for reference in scenario.references:
        reply = plain(reference, language)
        texts.append(ItemText(split, scenario.id, language, "reference", "companion", 1, reply))
    of_language = lengths(language)
    least = {"inputs": of_language.least_item_inputs, "reference": of_language.least_item_reference}
    return [text for text in texts if len(text.text) >= least[text.on]]


def _lines(messages: Iterable[Turn], language: Language) -> list[tuple[Role, str]]:
    return [(turn.role, plain(turn.content, language)) for turn in messages]


def _runs(lines: Sequence[str], turns: int) -> list[str]:
    """Every run of `turns` lines, one text each; all lines where there are fewer."""
    return ["\n".join(lines[start : start + turns]) for start in range(max(len(lines) - turns, 0) + 1)]


class _Postings:
    """The texts with each shingle; no two of `texts` are equal."""

    def __init__(self, texts: list[ItemText], width: int) -> None:
        import numpy as np

        self._texts, self._width = texts, width
        hashes, counts = shingle_hashes([text.text for text in texts], width)
        owners = np.repeat(np.arange(len(texts)), counts)
        pairs = np.unique(np.stack([hashes, owners.astype(np.uint64)]), axis=1)
        _, inverse, spread = np.unique(pairs[0], return_inverse=True, return_counts=True)
        spread, owner = spread[inverse], pairs[1].astype(np.int64)
        order = np.lexsort((pairs[0], spread, owner))
        sizes = np.bincount(owner)
        rank = np.empty(len(owner), np.int64)
        rank[order] = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        telling = (spread <= max(_COMMON, len(texts) // _COMMON_ONE_IN)) | (rank < _RAREST)
        self._hashes, self._owners = pairs[0][telling], owner[telling]
        sizes = np.bincount(self._owners)
        # One where a text repeats the same characters.
        self._least = np.maximum(np.minimum(2, sizes), _LEAST_OVERLAP * sizes)

    def likely(self, lines: Sequence[str]) -> list[ItemText]:
        """The texts that share enough shingles with the lines of a speaker."""
        import numpy as np

        spoken = [line for line in lines if line]
        if not spoken:
            return []
        hashes = unique_values(shingle_hashes(spoken, self._width)[0])
        starts = np.searchsorted(self._hashes, hashes, "left")
        sizes = np.searchsorted(self._hashes, hashes, "right") - starts
        places = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        shared = np.bincount(self._owners[places], minlength=len(self._texts))
        return [self._texts[place] for place in np.flatnonzero(shared >= self._least)]
