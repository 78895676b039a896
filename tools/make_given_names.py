"""Derive the lists of English names and words that `h2htalk/curation/anonymize/english/words` ships.

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
import tomllib
import unicodedata
from collections import Counter
from pathlib import Path

import faker
from lemminflect import getAllLemmas

TARGET = Path(__file__).parent.parent / "h2htalk" / "curation" / "anonymize" / "english" / "words"
_WORD = re.compile(r"(?<![\w'’])[A-Za-z]+(?![\w'’])")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ'’-]+")
# Locales whose names would be more noise than help (Icelandic patronymics, placeholders), or are in others' lists.
_LEFT_OUT = {"is_IS", "es", "en_TH", "la", "de_CH", "de_LI", "de_LU", "nl_BE", "fr_BE", "fr_DZ", "es_CA"}
_ENGLISH = {"en_US", "en_GB", "en_IE", "en_NZ", "en_IN", "en_PK", "en_KE", "en_NG"}
_SURNAMES_OF_CENSUS = 6500
_SURNAMES_A_LOCALE = 110


def folded(word: str) -> str:
    """Lower-case ASCII letters alone: Zoë is zoe, O'Malley is omalley."""
    plain = unicodedata.normalize("NFKD", word.replace("ł", "l").replace("Ł", "L").replace("ø", "o").replace("ß", "ss"))
    return "".join(c for c in plain.lower() if "a" <= c <= "z")


def census(folder: Path) -> tuple[dict[str, float], list[str]]:
    """Given names with the percentage of Americans who bear them, and surnames, the most frequent first."""
    given: dict[str, float] = {}
    for name in ("dist.female.first", "dist.male.first"):
        for line in (folder / name).read_text(encoding="ascii").splitlines():
            word, share, *_ = line.split()
            given[word.lower()] = max(given.get(word.lower(), 0.0), float(share))
    surnames = [line.split()[0].lower() for line in (folder / "dist.all.last").read_text().splitlines()]
    return given, surnames


def faker_names() -> tuple[dict[str, set[str]], dict[str, list[str]]]:
    """Given names with the locales that list them, and the surnames of each locale."""
    given: dict[str, set[str]] = {}
    surnames: dict[str, list[str]] = {}
    for folder in sorted((Path(faker.__file__).parent / "providers" / "person").iterdir()):
        if not (folder / "__init__.py").exists() or folder.name in _LEFT_OUT:
            continue
        provider = importlib.import_module(f"faker.providers.person.{folder.name}").Provider
        for key in dir(provider):
            value = getattr(provider, key)
            if not isinstance(value, (list, tuple, dict, set)) or "format" in key or "weight" in key:
                continue
            words = [folded(str(item)) for item in value if _LATIN.fullmatch(str(item))]
            if "first" in key:
                for word in words:
                    given.setdefault(word, set()).add(folder.name)
            elif "last" in key:
                surnames.setdefault(folder.name, []).extend(words)
    return given, surnames


def counts(data: Path) -> tuple[Counter[str], Counter[str]]:
    """How often words stand in lower case, and how often with a capital inside a sentence."""
    texts: set[str] = set()
    with (data / "raw/counselchat_en.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            texts |= {row["questionText"] or "", row["answerText"] or ""}
    for part in ("train", "val"):
        for pair in json.loads((data / f"safety/diasafety_{part}.json").read_text(encoding="utf-8")):
            texts |= {pair["context"], pair["response"]}
    for user in json.loads((data / "raw/memorybank_en.json").read_text(encoding="utf-8")).values():
        for turns in user["history"].values():
            texts |= {turn[side] for turn in turns for side in ("query", "response")}
    lower: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for text in texts:
        for found in _WORD.finditer(text):
            word = found[0]
            if word.islower():
                lower[word] += 1
            elif word.istitle() and text[max(0, found.start() - 2) : found.start()].rstrip()[-1:] not in (
                "",
                *".!?\"'“",
            ):
                capital[word.lower()] += 1
    return lower, capital


def written(name: str, words: set[str], head: str) -> None:
    body = textwrap.fill(" ".join(sorted(words)), 118, break_on_hyphens=False)
    comment = textwrap.fill(head, 116, initial_indent="# ", subsequent_indent="# ")
    (TARGET / name).write_text(f"{comment}\n{body}\n", encoding="ascii")
    print(name, len(words), "words", (TARGET / name).stat().st_size, "bytes")


def main(names_package: Path, data: Path) -> None:
    lower, capital = counts(data)
    census_given, census_surnames = census(names_package)
    given, surnames = faker_names()
    # What ends so is known for a word without the list: h2htalk/curation/anonymize/english/persons.py.
    with (TARGET / "grammar.toml").open("rb") as file:
        endings = tuple(tomllib.load(file)["endings"].split())
    known = {word for word in lower if getAllLemmas(word)}
    every = set(given) | set(census_given)
    # A word that English writes small: in the dictionary, and seen small at least as often as with a capital; or, out
    # of it (slang), often.
    ordinary = {w for w in known if lower[w] >= capital[w]} | {
        w for w, n in lower.items() if n >= 4 and n > 2 * capital[w] and (w not in every or n >= 12)
    }
    common = {w for w, share in census_given.items() if share >= 0.006}
    common |= {
        w for w, where in given.items() if len(where) >= 4 or where & {"en_US", "en_GB"} or len(where & _ENGLISH) >= 2
    }
    every = {w for w in every if len(w) >= 3}
    as_words = {w for w in every if w in ordinary or (getAllLemmas(w) and capital[w] < 3)}
    last = set(census_surnames[:_SURNAMES_OF_CENSUS])
    for names in surnames.values():
        last |= set(list(dict.fromkeys(names))[:_SURNAMES_A_LOCALE])
    last = {w for w in last if len(w) >= 2}
    source = "Sources: US Census Bureau 1990 (public domain), Faker (MIT). Made by tools/make_given_names.py."
    written(
        "given_common.txt",
        (every & common) - as_words,
        f"Frequent given names that are no English words. {source}",
    )
    written("given_rare.txt", every - common - as_words, f"Rarer given names that are no English words. {source}")
    written("given_words.txt", as_words & common, f"Given names that are English words too. {source}")
    written("surnames.txt", last, f"Surnames. {source}")
    written(
        "words.txt",
        {w for w in ordinary if len(w) > 1 and (len(w) < 7 or w in last | every or not w.endswith(endings))},
        "Words that English writes in lower case. Sources: LemmInflect (MIT); counts in counsel-chat and MemoryBank"
        " (MIT) and DiaSafety (Apache-2.0). Made by tools/make_given_names.py.",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
