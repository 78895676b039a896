"""Decontamination: find dialogues that contain an item of a split.

The inputs of an item are the user turns of its history, and each of its other texts; each of its references is one
reply. They are searched in every run of as many turns of the same speaker, so that an item extracted from the middle of
a dialogue is found: equal runs by their text, similar ones by the shingles that distinguish the texts of a split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import ROLES, Dialogue, Role, Scenario
from h2htalk.data.splits import Split
from h2htalk.detect.duplicates.compared_texts import lengths, plain, similarity

# A shingle in more texts than this (or, in large splits, in more than one of so many) tells little about any of them.
# For each text the rarest shingles count all the same, however common they are.
_COMMON, _COMMON_ONE_IN = 50, 500
_RAREST = 16
_LEAST_OVERLAP = 0.1  # of a text's shingles; 15 % edited characters leave 0.38 of them


class ItemText(NamedTuple):
    """A text of a split's item: `turns` lines, which a speaker may have said in as many turns."""

    split: str
    item: str
    on: Literal["inputs", "reference"]
    language: Language
    role: Role
    turns: int
    text: str


class SplitIndex:
    """The texts of splits by their words and by their shingles, for one least similarity."""

    def __init__(self, splits: Iterable[Split], least: float) -> None:
        """`least`: the least similarity (0 to 1) to an item."""
        self._least = least
        # Equal texts are stored once, for the first item by split and id.
        self._equal: dict[Language, dict[tuple[Role, int, str], ItemText]] = {
            name: {} for name in LANGUAGES
        }
        texts: list[ItemText] = []
        for split in splits:
            for scenario in split.scenarios:
                texts += item_texts(split.name, scenario)
        for text in sorted(texts):
            self._equal[text.language].setdefault((text.role, text.turns, text.text), text)
        self._turns: dict[Language, list[tuple[Role, int]]] = {}
        for language, equal in self._equal.items():
            self._turns[language] = sorted({(role, turns) for role, turns, _ in equal})
        # Each text with the least number of shingles that a speaker shares with it.
        self._texts: list[tuple[ItemText, float]] = []
        # Language, role, width of shingles, and the places of the texts with each shingle.
        self._postings: list[tuple[Language, Role, int, dict[str, list[int]]]] = []
        for language, equal in self._equal.items():
            sizes = lengths(language)
            for role in ROLES:
                for is_long, scale in enumerate(sizes["scales"]):
                    width = scale["width"]
                    shingles_of_texts = {
                        text: _shingles([text.text], width)
                        for text in equal.values()
                        if text.role == role and (len(text.text) >= sizes["long_item"]) == is_long
                    }
                    if shingles_of_texts:
                        postings = self._post(shingles_of_texts)
                        self._postings.append((language, role, width, postings))

    def _post(self, shingles_of_texts: dict[ItemText, set[str]]) -> dict[str, list[int]]:
        """Number the texts, and return the numbers of those with each shingle that distinguishes them."""
        spread = Counter(chain.from_iterable(shingles_of_texts.values()))
        common = max(_COMMON, len(shingles_of_texts) // _COMMON_ONE_IN)
        postings: dict[str, list[int]] = {}
        for text, shingles in shingles_of_texts.items():
            rarest = sorted(shingles, key=lambda shingle: (spread[shingle], shingle))
            telling = [
                shingle
                for n, shingle in enumerate(rarest)
                if n < _RAREST or spread[shingle] <= common
            ]
            for shingle in telling:
                postings.setdefault(shingle, []).append(len(self._texts))
            # 1 where a text repeats the same characters.
            least = min(2, len(telling))
            self._texts.append((text, max(least, _LEAST_OVERLAP * len(telling))))
        return postings

    def find(self, dialogue: Dialogue) -> dict[str, object] | None:
        """The evidence of the most similar item in a dialogue (ties by split and id); None without any.

        Exact copies are found without shingles.
        """
        language = dialogue.language
        equal = self._equal[dialogue.language]
        spoken: dict[Role, list[str]] = {role: [] for role in ROLES}
        for turn in dialogue.messages:
            spoken[turn.role].append(plain(turn.content, language))
        matches: list[tuple[float, ItemText]] = []
        for role, turns in self._turns[language]:
            for run in _runs(spoken[role], turns):
                if (role, turns, run) in equal:
                    matches.append((1.0, equal[role, turns, run]))
        for of_language, role, width, postings in self._postings:
            if of_language == language:
                matches += self._similar(spoken[role], width, postings)
        if not matches:
            return None
        similar, text = min(matches, key=lambda match: (-match[0], match[1]))
        return {
            "of": text.item,
            "split": text.split,
            "on": text.on,
            "similarity": round(similar, 4),
        }

    def _similar(
        self, lines: Sequence[str], width: int, postings: dict[str, list[int]]
    ) -> Iterator[tuple[float, ItemText]]:
        """The texts that are similar enough to a run of a speaker's lines, with their similarity."""
        shingles = postings.keys() & _shingles(lines, width)
        shared = Counter(chain.from_iterable(map(postings.__getitem__, shingles)))
        for number, count in shared.items():
            text, least = self._texts[number]
            if count < least:
                continue
            # A message may contain the text and more.
            similar = max(
                1.0 if text.text in run else similarity(text.text, run, self._least)
                for run in _runs(lines, text.turns)
            )
            if similar >= self._least:
                yield similar, text


def item_texts(split: str, scenario: Scenario) -> list[ItemText]:
    """The compared texts of an item."""
    language = scenario.language
    sizes = lengths(language)
    lines = [plain(turn.content, language) for turn in scenario.turns if turn.role == "user"]
    texts = [ItemText(split, scenario.id, "inputs", language, "user", len(lines), "\n".join(lines))]
    for name, value in scenario.inputs.items():
        if name == "history":
            continue
        if isinstance(value, str):
            written = value
        else:
            written = " ".join(str(getattr(entry, "activity", entry)) for entry in value)
        line = plain(written, language)
        texts.append(ItemText(split, scenario.id, "inputs", language, "user", 1, line))
    replies = (plain(reference, language) for reference in scenario.references)
    texts += [
        ItemText(split, scenario.id, "reference", language, "companion", 1, reply)
        for reply in replies
    ]
    least = {"inputs": sizes["least_item_inputs"], "reference": sizes["least_item_reference"]}
    return [text for text in texts if len(text.text) >= least[text.on]]


def _runs(lines: Sequence[str], turns: int) -> list[str]:
    """Every run of `turns` lines, one text each; all lines where there are fewer."""
    last = max(len(lines) - turns, 0)
    return ["\n".join(lines[start : start + turns]) for start in range(last + 1)]


def _shingles(lines: Iterable[str], width: int) -> set[str]:
    """The n-grams of `width` characters of lines; a shorter line is one."""
    shingles: set[str] = set()
    for line in lines:
        last = max(len(line) - width, 0)
        shingles.update([line[start : start + width] for start in range(last + 1)])
    shingles.discard("")
    return shingles
