"""Derive the lists of English names and words that `h2htalk/detect/personal/english/words` ships.

Sources, all free: the US Census Bureau's names of 1990 (public domain, as carried by the package `names` 0.3.0, MIT),
Faker's name providers (MIT), LemmInflect's dictionary (MIT), and counts of lower-case words in counsel-chat and
MemoryBank (MIT) and DiaSafety (Apache-2.0). ESConv is not read: it may not be shipped, nor anything made of it.

    python tools/make_given_names.py NAMES_PACKAGE_FOLDER DATA_FOLDER

Only lists of words leave this script, no sentence.
"""

from __future__ import annotations

import csv
import importlib
import json
import re
import sys
import textwrap
from collections import Counter, defaultdict
from pathlib import Path

import faker
from lemminflect import getAllLemmas

from h2htalk.detect.personal.english.persons import folded, hint

TARGET = Path(__file__).parents[1] / "h2htalk/detect/personal/english/words"
_WORD = re.compile(r"(?<![\w'’])[A-Za-z]+(?![\w'’])")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ'’-]+")
# Locales whose names would be more noise than help (Icelandic patronymics, placeholders), or are in others' lists.
_LEFT_OUT = {
    "is_IS",
    "es",
    "en_TH",
    "la",
    "de_CH",
    "de_LI",
    "de_LU",
    "nl_BE",
    "fr_BE",
    "fr_DZ",
    "es_CA",
}
_ENGLISH = {"en_US", "en_GB", "en_IE", "en_NZ", "en_IN", "en_PK", "en_KE", "en_NG"}
_SURNAMES_OF_CENSUS, _SURNAMES_A_LOCALE = 6500, 110


def faker_names() -> tuple[dict[str, set[str]], dict[str, list[str]]]:
    """Given names with the locales that list them, and the surnames of each locale."""
    given = defaultdict[str, set[str]](set)
    surnames = defaultdict[str, list[str]](list)
    for folder in sorted((Path(faker.__file__).parent / "providers" / "person").iterdir()):
        if not (folder / "__init__.py").exists() or folder.name in _LEFT_OUT:
            continue
        provider = importlib.import_module(f"faker.providers.person.{folder.name}").Provider
        for key in dir(provider):
            value = getattr(provider, key)
            if (
                not isinstance(value, (list, tuple, dict, set))
                or "format" in key
                or "weight" in key
            ):
                continue
            words = [folded(str(item)) for item in value if _LATIN.fullmatch(str(item))]
            if "first" in key:
                for word in words:
                    given[word].add(folder.name)
            elif "last" in key:
                surnames[folder.name] += words
    return given, surnames


def counts(data: Path) -> tuple[Counter[str], Counter[str]]:
    """How often words stand in lower case, and how often with a capital inside a sentence."""
    with (data / "raw/counselchat_en.csv").open(encoding="utf-8") as file:
        texts = {
            row[key] or "" for row in csv.DictReader(file) for key in ("questionText", "answerText")
        }
    for part in ("train", "val"):
        pairs = json.loads((data / f"safety/diasafety_{part}.json").read_text(encoding="utf-8"))
        texts.update(pair[side] for pair in pairs for side in ("context", "response"))
    for user in json.loads((data / "raw/memorybank_en.json").read_text(encoding="utf-8")).values():
        texts.update(
            turn[side]
            for day in user["history"].values()
            for turn in day
            for side in ("query", "response")
        )
    lower = Counter[str]()
    capital = Counter[str]()
    for text in texts:
        for found in _WORD.finditer(text):
            before = text[max(0, found.start() - 2) : found.start()].rstrip()[-1:]
            if found[0].islower():
                lower[found[0]] += 1
            elif found[0].istitle() and before and before not in ".!?\"'“":
                capital[found[0].lower()] += 1
    return lower, capital


def main(names_package: Path, data: Path) -> None:
    lower, capital = counts(data)
    shares: dict[str, float] = {}  # percentage of Americans who bear a given name
    for name in ("dist.female.first", "dist.male.first"):
        for line in (names_package / name).read_text(encoding="ascii").splitlines():
            word, share, *_ = line.lower().split()
            shares[word] = max(shares.get(word, 0.0), float(share))
    given, surnames = faker_names()
    census = [
        line.split()[0].lower()
        for line in (names_package / "dist.all.last").read_text().splitlines()
    ]
    last = {*census[:_SURNAMES_OF_CENSUS]}.union(
        *([*dict.fromkeys(n)][:_SURNAMES_A_LOCALE] for n in surnames.values())
    )
    # A word that English writes small: in the dictionary, and seen small at least as often as with a capital; or, out
    # of it (slang), often.
    every = given.keys() | shares.keys()
    ordinary = {w for w in lower if getAllLemmas(w) and lower[w] >= capital[w]} | {
        w for w, n in lower.items() if n >= 4 and n > 2 * capital[w] and (w not in every or n >= 12)
    }
    common = {w for w, share in shares.items() if share >= 0.006} | {
        w
        for w, where in given.items()
        if len(where) >= 4 or where & {"en_US", "en_GB"} or len(where & _ENGLISH) >= 2
    }
    every = {w for w in every if len(w) >= 3}
    as_words = {w for w in every if w in ordinary or (getAllLemmas(w) and capital[w] < 3)}
    # What ends so is known for a word without the list.
    unlisted = {
        w for w in ordinary - last - every if len(w) > 6 and w.endswith(tuple(hint("endings")))
    }
    names = "US Census Bureau 1990 (public domain), Faker (MIT)"
    corpora = (
        "LemmInflect (MIT); counts in counsel-chat and MemoryBank (MIT) and DiaSafety (Apache-2.0)"
    )
    for file, found, what, source in (
        (
            "given_common",
            (every & common) - as_words,
            "Frequent given names that are no English words",
            names,
        ),
        (
            "given_rare",
            every - common - as_words,
            "Rarer given names that are no English words",
            names,
        ),
        ("given_words", as_words & common, "Given names that are English words too", names),
        ("surnames", {w for w in last if len(w) > 1}, "Surnames", names),
        (
            "words",
            {w for w in ordinary if len(w) > 1} - unlisted,
            "Words that English writes in lower case",
            corpora,
        ),
    ):
        head = textwrap.wrap(f"{what}. Sources: {source}. Made by tools/make_given_names.py.", 116)
        body = textwrap.fill(" ".join(sorted(found)), 118, break_on_hyphens=False)
        (TARGET / f"{file}.txt").write_text(
            "".join(f"# {line}\n" for line in head) + f"{body}\n", encoding="ascii"
        )
        print(file, len(found), "words")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
