"""More names than the sets hold: copies of training sentences with other persons in them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines.treebanks import NamedSentence

from h2htalk.text.chinese_characters import SURNAMES


def listed_chinese_names() -> list[str]:
    """Full names (surname and one or two characters) among the persons of jieba's dictionary (MIT licence)."""
    import jieba

    lines = (Path(jieba.__file__).parent / "dict.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split(" ") for line in lines)
    return [word for word, _, tag in rows if tag == "nr" and len(word) in (2, 3) and word[0] in SURNAMES]


def swapped(sentences: Sequence[NamedSentence], names: Sequence[str], *, seed: int = 0) -> Iterator[NamedSentence]:
    """A copy of every other sentence that names a person, each replaced: half by a listed name, half by a made one.

    More copies find more names, and take more words that begin like one (`苏绣`, `吴语`) for names.

    A made name is a common surname and one or two characters of listed given names. The copy's name is one word.
    """
    rng = random.Random(seed)
    given = sorted({name[1:] for name in names})
    for sentence in [s for s in sentences if "B-PERSON" in s.tags][::2]:
        words: list[str] = []
        tags: list[str] = []
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if tag == "B-PERSON":
                made = rng.choice(SURNAMES) + rng.choice(given)
                words.append(rng.choice(names) if rng.random() < 0.5 else made)
                tags.append(tag)
            elif tag != "I-PERSON":
                words.append(word)
                tags.append(tag)
        yield NamedSentence(tuple(words), tuple(tags), (False,) * len(words))
