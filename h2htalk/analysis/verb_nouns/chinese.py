"""Find Chinese verbs and the nouns they act on, from the order of the words.

A small parser is often wrong on Chinese, the word order rarely: after a verb, aspect, numbers and modifiers lead to the
head noun, the last of its phrase. Each word gets a kind of one character (`chinese_words.toml` lists them; here also A
adjective, C result, F localizer, L aspect, Q classifier, S stop), and the rules read a clause as a string of kinds.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.verb_nouns.pairs import VerbNounPair
from h2htalk.text.parsing.chinese_segmenter import bundled_segmenter

if TYPE_CHECKING:
    from spacy.tokens import Doc

_LISTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("chinese_words.toml").read_text(encoding="utf-8")
)
_WORDS = {
    name: frozenset(words.split()) for name, words in _LISTS.items() if isinstance(words, str)
}
_KINDS: dict[str, str] = {
    word: kind for kind, words in _LISTS["kinds"].items() for word in words.split()
}
_FREE_NOUNS = frozenset("".join(_LISTS["compounds"].values()))
_ASPECTS = ("了", "着", "过")
_CLAUSE = re.compile("[^S]{1,200}")  # the rules look back and forth, so a longer clause is cut


@lru_cache(65536)
def _class(word: str) -> str:
    """Return the first letter of the dictionary's class of a word; "" for a name or an unlisted word (封信, 太冷)."""
    name = bundled_segmenter().lexicon.class_of(word) or ""
    return "" if name in ("nr", "nrt", "nrfg", "nz") else name[:1]


def chinese_pairs(doc: Doc) -> list[VerbNounPair]:
    """Return the (verb, head noun of its direct object) pairs of a parsed text, in the order of its nouns.

    Verbs come without aspect and, where no dictionary has the compound, without result or direction (`写完` ->
    `写`, `打开` stays); verb-object compounds of two free words are cut (`喝水` -> 喝 水), bound ones (`散步`) give
    nothing. The noun of 把 and 将 is an object, the subject of 被 is none; of two objects the thing given counts.
    """
    texts, kinds = _tokens(doc)
    clauses = [
        _Clause(texts[found.start() : found.end()], found[0]) for found in _CLAUSE.finditer(kinds)
    ]
    return [
        VerbNounPair(verb, clause.texts[noun])
        for clause in clauses
        for noun, verb in clause.pairs()
    ]


def _tokens(doc: Doc) -> tuple[list[str], str]:
    """Return the words of a parsed text, without white space, and their kinds."""
    joined = [("", "")]
    for text, tag in ((token.text, token.pos_) for token in doc if not token.is_space):
        before, was = joined[-1]
        suffix = text in _WORDS["noun_suffixes"] and was in ("NOUN", "VERB", "ADJ")
        if suffix or (
            len(text) == 1 < len(before)
            and _KINDS.get(text) != "B"
            and _class(before + text) == "n"
        ):
            joined[-1] = (before + text, "NOUN")  # 充电|器
        else:
            joined.append((text, tag))
    parts = [part for text, tag in joined[1:] for part in _cut(text, tag)]
    kinds = "S"
    for (text, tag), following in zip(parts, [*parts[1:], ("", "")], strict=False):
        kinds += _kind(text, tag, kinds[-1], *following)
    return [text for text, _ in parts], kinds[1:]


@lru_cache(65536)
def _cut(text: str, tag: str) -> tuple[tuple[str, str], ...]:
    """Cut a compound of two free words, or a word that no dictionary has, into parts with their tags ("": unknown)."""
    first = text[:1]
    rest = text[1:]
    if rest and rest in _LISTS["compounds"].get(first, ""):
        return ((first, "VERB"), (rest, "NOUN"))
    if not rest or text in _KINDS or _class(text):
        return ((text, tag),)
    noun = _class(rest) == "n" if len(rest) > 1 else rest in _FREE_NOUNS
    if first in _WORDS["free_verbs"] and (noun or rest in _WORDS["measures"]):
        return ((first, "VERB"), (rest, "NOUN" if noun else ""))
    if noun and (first in _WORDS["classifiers"] | _WORDS["results"] or first in "新旧老小大热冷脏"):
        return ((first, "ADJ"), (rest, "NOUN"))
    acts = first in _KINDS and (rest in _WORDS["free_verbs"] or _class(rest) == "v")
    return ((first, "ADV"), (rest, "VERB")) if acts else ((text, tag),)  # 没看


def _kind(text: str, tag: str, last: str, after: str, after_tag: str) -> str:
    """Return the kind of a word with this tag between a word of the kind `last` and the word `after`."""
    kind = _KINDS.get(text)
    starts = after_tag in ("NOUN", "PROPN", "NUM", "DET")
    if not text[0].isalnum():
        return kind or "S"
    if text in _ASPECTS or (after in _ASPECTS and last not in "VUQ"):
        return "L" if text in _ASPECTS else "V"
    if tag == "NOUN" and text in _WORDS["nominal"]:
        return "N"  # 行动计划
    if text in _WORDS["classifiers"] and (
        last == "M" or (text in _WORDS["measures"] and after[:1].isalnum())
    ):
        return "Q"
    for one, name in ("C", "results"), ("F", "localizers"):
        if text in _WORDS[name] and (one == "F" or last == "V"):
            return one
    if kind and not (text in _WORDS["free_verbs"] and starts and kind in "BOM"):
        return kind
    listed = _class(text)
    if tag in ("NOUN", "PROPN", "ADJ"):
        return "A" if tag == "ADJ" else "N"
    if tag not in ("VERB", "AUX", ""):
        return (
            "B"
            if tag in ("ADV", "CCONJ", "SCONJ")
            else {"n": "N", "v": "V", "a": "A"}.get(listed, "M")
        )
    return (
        "N"
        if (listed == "n" and (last in "UQHLMVN" and not starts)) or (last == "U" and len(text) > 1)
        else "V"
    )


def bare_verb(text: str) -> str:
    """Strip doubling, result and direction from a verb: 看看 -> 看, 写完 -> 写; words of the dictionary stay whole."""
    half = text[: len(text) // 2]
    if half * 2 == text:
        return text if text in _WORDS["doubled_verbs"] else half
    for stem, ending in (text[:-2], text[-2:]), (text[:-1], text[-1:]):
        cut = (ending in _WORDS["results"] and not _class(text)) or ending in ("给", "在")
        if cut and (stem in _WORDS["free_verbs"] or _class(stem) == "v"):
            return stem
    return text


class _Clause:
    """The words between two punctuation marks; every index counts `texts`, `kinds` holds one character a word."""

    def __init__(self, texts: list[str], kinds: str) -> None:
        self.texts, self.kinds = texts, kinds + "S"

    def after(self, at: int, kinds: str) -> int:
        """Return the index behind the words of these kinds that start here."""
        while self.kinds[at] in kinds:
            at += 1
        return at

    def pairs(self) -> list[tuple[int, str]]:
        """Return (index of the noun, verb) in the order of the nouns."""
        pairs: list[tuple[int, str]] = []
        served = -1  # the verb whose object stands before it, behind 把
        for at, kind in enumerate(self.kinds):
            if kind == "H":
                heads, end = self.nouns_after(at + 1)
                served = self.kinds.find("V", end)
                pairs += [(head, bare_verb(self.texts[served])) for head in heads if served >= 0]
            elif (kind == "V" and at != served) or (kind == "G" and "V" not in self.kinds):
                verb = bare_verb(self.texts[at])
                end = self.after(at + 1, "CL")
                if (
                    _WORDS["no_object"].isdisjoint((verb, self.texts[at]))
                    and self.texts[end - 1][-1] not in "在往向"
                ):
                    pairs += [(head, verb) for head in self.objects(verb, end)]
        return sorted(pairs, key=lambda pair: pair[0])

    def objects(self, verb: str, end: int) -> list[int]:
        """Return the objects of a verb whose results and aspect end at an index."""
        if self.kinds[end] == "U":  # a relative clause without an object: the noun after 的 is it
            return [
                head
                for head in self.nouns_after(end + 1)[0]
                if self.texts[head] not in _WORDS["adjuncts"]
            ]
        clausal = verb in _WORDS["clausal"]
        if self.kinds[end : end + 2] == "KV":  # 清洗并晾干衣服
            end = self.after(end + 2, "CL")
        heads, end = self.nouns_after(end + (self.kinds[end] == "G"), direct=clausal)
        return (
            [] if clausal and self.kinds[self.after(end, "BXTPR")] in "VAHJG" else heads
        )  # 说[他病了]

    def nouns_after(self, at: int, *, direct: bool = False) -> tuple[list[int], int]:
        """Return the heads of coordinated noun phrases that start here (鸡翅、西兰花和草莓), and the index after them.

        `direct`: the verb before may take another verb (想, 开始), which then follows at once.
        """
        head, start = None, at
        while (kind := self.kinds[at]) != "S":
            if kind == "N":
                head = at
            elif kind == "U":
                if not self.noun_follows(at + 1):
                    head = head if self.kinds[at + 1] == "T" else None  # 看书的时候
                    break
                head = None
            elif kind == "F" and head is not None:
                if self.kinds[at + 1] != "U":
                    head = head if self.texts[at] in _WORDS["after_clauses"] else None
                    break
            elif kind not in "MQART" or head is not None:
                if (jump := self.clause_end(at, start, direct)) is None:
                    break
                at, head = jump, None
            at += 1
        heads = [] if head is None else [head]
        others, end = (
            self.nouns_after(at + 1, direct=True) if heads and self.kinds[at] == "K" else ([], at)
        )
        return heads + others, end if others else at

    def clause_end(self, at: int, start: int, direct: bool) -> int | None:
        """Return the index of the 的 that closes a relative clause beginning here; None if it has none."""
        end = self.kinds.find("U", at + 1)
        inside = self.kinds[at:end]
        if end < 0 or not self.noun_follows(end + 1) or self.kinds[at] in "KO":
            return None
        if (
            direct and at == start and self.kinds[self.after(at, "BX")] in "VPHG"
        ) or "是" in self.texts[at:end]:
            return None  # 想[尽量控制自己的情绪]
        if at == start and inside[0] == "V" and inside[-1] == "R":
            return None  # 调整自己的心态
        if self.kinds[at] in "PB" and set(inside) <= set("PBRNTF"):
            return end  # 别人对我的看法
        # A subject stands before: its verb must reach the 的 without an object of its own.
        reaches = (
            inside[-1] in "VCLA" and inside.count("V") <= 1 and ("N" not in inside or "P" in inside)
        )
        return end if self.kinds[at - 1] not in "RN" or reaches else None

    def noun_follows(self, at: int) -> bool:
        return self.kinds[self.after(at, "MQARTB")] == "N"
