"""Decontamination: which dialogues hold an item of a split, that a benchmark made of them must not ask again.

An item's inputs are its history's user turns, and its other texts each; its reference is one reply. They are looked
for in every run of as many turns of the same speaker, so that an item cut from the middle of a dialogue is found: equal
runs by the text itself, whatever it is made of, and similar ones by the shingles that tell the texts of a split apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

from h2htalk.curation.dedup_shingles import SCALES, plain, shingle_hashes, unique_values
from h2htalk.curation.dedup_similarity import similarity
from h2htalk.data.dialogue import LANGUAGES, Dialogue, Language, Role, Turn
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Characters as compared: shorter inputs and references are phrases that anybody says.
LEAST_INPUTS = {"en": 24, "zh": 10}
LEAST_REFERENCE = {"en": 40, "zh": 16}
# A shingle that more texts than this hold (one in so many, where the splits are large) says next to nothing about any
# of them. It counts all the same for a text that has hardly any rarer ones: so many of each, however common they are.
_COMMON, _COMMON_ONE_IN = 50, 500
_RAREST = 16
_LEAST_OVERLAP = 0.1  # of a text's shingles; 15 % edited characters leave 0.38 of them
_LONG = {"en": 60, "zh": 45}  # from here on the long scale's shingles


@dataclass(frozen=True, slots=True)
class ItemText:
    """A text of a split's item: `turns` lines, that a speaker of a dialogue may have said in as many turns."""

    split: str
    item: str
    on: Literal["inputs", "reference"]
    role: Role
    turns: int
    text: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.split, self.item, self.on


@dataclass(frozen=True, slots=True)
class Contamination:
    """Which item a dialogue holds, and how similar the two are (0 to 1)."""

    of: ItemText
    similarity: float

    def evidence(self) -> dict[str, object]:
        return {
            "of": self.of.item,
            "split": self.of.split,
            "on": self.of.on,
            "similarity": round(self.similarity, 4),
        }


class SplitIndex:
    """The texts of splits by their shingles, for one similarity."""

    def __init__(self, splits: Iterable[tuple[str, Split]], least: float) -> None:
        """`splits`: each by the name it was asked for; `least`: similarity (0 to 1) from which an item is held."""
        found: dict[Language, list[ItemText]] = {language: [] for language in LANGUAGES}
        for name, split in splits:
            for scenario in split.scenarios:
                found[scenario.language] += item_texts(name, scenario)
        self._least = least
        self._equal = {language: _distinct(found[language]) for language in LANGUAGES}
        self._runs = {
            language: sorted({(role, turns) for role, turns, _ in self._equal[language]})
            for language in LANGUAGES
        }
        self._postings = {
            (language, scale): _Postings(
                [t for t in self._equal[language].values() if _scale(t.text, language) == scale], width
            )
            for language in LANGUAGES
            for scale, width in enumerate(part.width for part in SCALES[language])
        }

    def find(self, dialogues: Sequence[Dialogue]) -> list[Contamination | None]:
        """For each dialogue the item that it holds most of; ties by split and id."""
        spoken = [_lines(dialogue.messages, dialogue.language) for dialogue in dialogues]
        found = [
            self._held_exactly(dialogue.language, lines)
            for dialogue, lines in zip(dialogues, spoken, strict=True)
        ]
        for (language, _), postings in self._postings.items():
            rows = [n for n, dialogue in enumerate(dialogues) if dialogue.language == language]
            if not rows or not postings.texts:
                continue
            turns = [spoken[n] for n in rows]
            for place, text, starts in postings.likely(turns):
                held = _held(postings.texts[text], turns[place], starts, self._least)
                found[rows[place]] = _more(found[rows[place]], held)
        return found

    def _held_exactly(self, language: Language, lines: Sequence[tuple[Role, str]]) -> Contamination | None:
        """The first text, by split and id, that is a run of turns of its speaker."""
        found = []
        for role, turns in self._runs[language]:
            said = [line for speaker, line in lines if speaker == role]
            for start in range(len(said) - turns + 1):
                text = self._equal[language].get((role, turns, "\n".join(said[start : start + turns])))
                found += [text] if text else []
        return Contamination(min(found, key=lambda text: text.key), 1.0) if found else None


def item_texts(split: str, scenario: Scenario) -> list[ItemText]:
    """The texts by which an item is known, as they are compared."""
    language = scenario.language
    lines = [text for turn, text in _lines(scenario.turns, language) if turn == "user"]
    texts = [ItemText(split, scenario.id, "inputs", "user", len(lines), "\n".join(lines))]
    for name, value in scenario.inputs.items():
        if name == "history":
            continue
        words = [value] if isinstance(value, str) else [str(getattr(v, "activity", v)) for v in value]
        texts.append(ItemText(split, scenario.id, "inputs", "user", 1, plain(" ".join(words), language)))
    reply = plain(scenario.reference, language)
    texts.append(ItemText(split, scenario.id, "reference", "companion", 1, reply))
    least = {"inputs": LEAST_INPUTS[language], "reference": LEAST_REFERENCE[language]}
    return [text for text in texts if len(text.text) >= least[text.on]]


def _lines(messages: Iterable[Turn], language: Language) -> list[tuple[Role, str]]:
    return [(turn.role, plain(turn.content, language)) for turn in messages]


def _scale(text: str, language: Language) -> int:
    return int(len(text) >= _LONG[language])


def _distinct(texts: Iterable[ItemText]) -> dict[tuple[Role, int, str], ItemText]:
    """Texts by what they say; of items that say the same, the first by split and id."""
    found: dict[tuple[Role, int, str], ItemText] = {}
    for text in sorted(texts, key=lambda text: text.key):
        found.setdefault((text.role, text.turns, text.text), text)
    return found


class _Postings:
    """Which texts hold a shingle. `texts`: no two that say the same."""

    def __init__(self, texts: list[ItemText], width: int) -> None:
        import numpy as np

        self.texts = texts
        self._width = width
        self._hashes = np.empty(0, np.uint64)
        self._owners = np.empty(0, np.int64)
        self._sizes = np.zeros(len(texts), np.int64)
        if texts:
            self._fill()

    def _fill(self) -> None:
        import numpy as np

        hashes, counts = shingle_hashes([text.text for text in self.texts], self._width)
        owners = np.repeat(np.arange(len(self.texts)), counts)
        pairs = np.unique(np.stack([hashes, owners.astype(np.uint64)]), axis=1)
        _, inverse, spread = np.unique(pairs[0], return_inverse=True, return_counts=True)
        spread, owner = spread[inverse], pairs[1].astype(np.int64)
        order = np.lexsort((pairs[0], spread, owner))
        sizes = np.bincount(owner, minlength=len(self.texts))
        rank = np.empty(len(owner), np.int64)
        rank[order] = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        telling = (spread <= max(_COMMON, len(self.texts) // _COMMON_ONE_IN)) | (rank < _RAREST)
        self._hashes, self._owners = pairs[0][telling], owner[telling]
        self._sizes = np.bincount(self._owners, minlength=len(self.texts))

    def likely(self, dialogues: Sequence[Sequence[tuple[Role, str]]]) -> Iterable[tuple[int, int, list[int]]]:
        """(dialogue, text, turns of the text's speaker that share shingles with it), where enough are shared."""
        import numpy as np

        spoken = [
            (place, number, role, text)
            for place, lines in enumerate(dialogues)
            for speaker in ("user", "companion")
            for number, (role, text) in enumerate(line for line in lines if line[0] == speaker)
            if text
        ]
        if not spoken:
            return
        turn, text, shared = self._overlaps([line[3] for line in spoken])
        wanted = np.array([item.role == "user" for item in self.texts])
        place = np.array([line[0] for line in spoken])
        same = np.array([line[2] == "user" for line in spoken])[turn] == wanted[text]
        turn, text, shared = turn[same], text[same], shared[same]
        if not len(turn):
            return
        order = np.argsort(place[turn] * len(self.texts) + text, kind="stable")
        turn, text, shared = turn[order], text[order], shared[order]
        code = place[turn] * len(self.texts) + text
        starts = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])
        ends = np.append(starts[1:], len(code))
        sizes = self._sizes[text[starts]]  # one, where a text says one thing over and over
        enough = np.add.reduceat(shared, starts) >= np.maximum(np.minimum(2, sizes), _LEAST_OVERLAP * sizes)
        for start, end in zip(starts[enough].tolist(), ends[enough].tolist(), strict=True):
            near = sorted(spoken[number][1] for number in turn[start:end].tolist())
            yield int(place[turn[start]]), int(text[start]), near

    def _overlaps(
        self, lines: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(line, text, shingles that both hold), where any are."""
        import numpy as np

        hashes, counts = shingle_hashes(lines, self._width)
        owner = np.repeat(np.arange(len(lines)), counts)
        start = np.searchsorted(self._hashes, hashes, "left")
        many = np.searchsorted(self._hashes, hashes, "right") - start
        hit = many > 0
        owner, start, many = owner[hit], start[hit], many[hit]
        offsets = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        posting = np.repeat(start, many) + offsets
        both = unique_values(np.repeat(owner, many) * len(self._hashes) + posting)
        code = both // len(self._hashes) * len(self.texts) + self._owners[both % len(self._hashes)]
        pairs, shared = np.unique(code, return_counts=True)
        return pairs // len(self.texts), pairs % len(self.texts), shared


def _held(
    text: ItemText, lines: Sequence[tuple[Role, str]], near: Sequence[int], least: float
) -> Contamination | None:
    """The most similar run of turns of the text's speaker that includes one of the turns `near`."""
    said = [line for role, line in lines if role == text.role]
    last = max(len(said) - text.turns, 0)
    starts = {start for turn in near for start in range(max(turn - text.turns + 1, 0), min(turn, last) + 1)}
    runs = {"\n".join(said[start : start + text.turns]) for start in starts}
    # A message may hold it and say more.
    best = max(chain((1.0 if text.text in run else similarity(text.text, run, least) for run in runs), [0.0]))
    return Contamination(text, best) if best >= least else None


def _more(a: Contamination | None, b: Contamination | None) -> Contamination | None:
    if a is None or b is None:
        return a or b
    return min(a, b, key=lambda found: (-found.similarity, found.of.key))
