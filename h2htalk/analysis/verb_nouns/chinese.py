"""Find Chinese verbs and the nouns they act on, from the order of the words.

A small parser is often wrong on Chinese, the word order rarely: after a verb, aspect, numbers and modifiers lead to the
head noun, the last of its phrase. Each word gets a kind of one character (`chinese_words.toml` lists them; here also A
adjective, C result, F localizer, L aspect, Q classifier, S stop), and the rules read a clause as a string of kinds.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
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
_KINDS: dict[str, str] = {}
for _name, _words_of_kind in _LISTS["kinds"].items():
    _KINDS |= dict.fromkeys(_words_of_kind.split(), _name)
_KINDS_OF_TAGS = {"NOUN": "N", "PROPN": "N", "ADJ": "A", "ADV": "B", "CCONJ": "B", "SCONJ": "B"}
_KINDS_OF_CLASSES = {"n": "N", "v": "V", "a": "A"}
_FREE_NOUNS = frozenset("".join(_LISTS["compounds"].values()))
_MODIFIERS = _WORDS["classifiers"] | _WORDS["results"] | frozenset("新旧老小大热冷脏")
_ASPECTS = ("了", "着", "过")
_CLAUSE = re.compile("[^S]{1,200}")  # the rules look back and forth, so a longer clause is cut


@dataclass(frozen=True, slots=True)
class _Word:
    """A word and its part of speech by the parser, "" where it has none."""

    text: str
    tag: str


_END = _Word("", "")


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
    words = _cut_words(doc)
    texts = [word.text for word in words]
    pairs = []
    for match in _CLAUSE.finditer(_find_kinds(words)):
        clause = _Clause(texts[match.start() : match.end()], match[0] + "S")
        for noun, verb in clause.pairs():
            pairs.append(VerbNounPair(verb, clause.texts[noun]))
    return pairs


# --- Words and their kinds --------------------------------------------------------------------------------------------


def _cut_words(doc: Doc) -> list[_Word]:
    """Return the words of a parsed text, without white space: with suffixes joined, and compounds cut."""
    joined = [_END]
    for token in doc:
        if token.is_space:
            continue
        before = joined[-1]
        if _is_suffix(token.text, before):
            joined[-1] = _Word(before.text + token.text, "NOUN")  # 充电|器
        else:
            joined.append(_Word(token.text, token.pos_))
    words: list[_Word] = []
    for word in joined[1:]:
        words += _cut(word.text, word.tag)
    return words


def _is_suffix(text: str, before: _Word) -> bool:
    if text in _WORDS["noun_suffixes"] and before.tag in ("NOUN", "VERB", "ADJ"):
        return True
    if len(text) > 1 or len(before.text) < 2 or _KINDS.get(text) == "B":
        return False
    return _class(before.text + text) == "n"


@lru_cache(65536)
def _cut(text: str, tag: str) -> tuple[_Word, ...]:
    """Cut a compound of two free words, or a word that no dictionary has, into parts with their tags ("": unknown)."""
    first = text[:1]
    second = text[1:]
    uncut = (_Word(text, tag),)
    if not second:
        return uncut
    if second in _LISTS["compounds"].get(first, ""):
        return (_Word(first, "VERB"), _Word(second, "NOUN"))
    if text in _KINDS or _class(text):
        return uncut
    noun = _class(second) == "n" if len(second) > 1 else second in _FREE_NOUNS
    if first in _WORDS["free_verbs"] and (noun or second in _WORDS["measures"]):
        return (_Word(first, "VERB"), _Word(second, "NOUN" if noun else ""))
    if noun and first in _MODIFIERS:
        return (_Word(first, "ADJ"), _Word(second, "NOUN"))
    if first in _KINDS and (second in _WORDS["free_verbs"] or _class(second) == "v"):
        return (_Word(first, "ADV"), _Word(second, "VERB"))  # 没看
    return uncut


def _find_kinds(words: Sequence[_Word]) -> str:
    """Return the kinds of words, one character each."""
    kinds = ""
    last = "S"
    for word, following in pairwise([*words, _END]):
        last = _kind(word, last, following)
        kinds += last
    return kinds


def _kind(word: _Word, last: str, following: _Word) -> str:
    """Return the kind of a word between one of the kind `last` and the following one."""
    text = word.text
    kind = _KINDS.get(text)
    if not text[0].isalnum():
        return kind or "S"
    if text in _ASPECTS:
        return "L"
    if following.text in _ASPECTS and last not in "VUQ":
        return "V"
    if word.tag == "NOUN" and text in _WORDS["nominal"]:
        return "N"  # 行动计划
    if text in _WORDS["classifiers"]:
        if last == "M" or (text in _WORDS["measures"] and following.text[:1].isalnum()):
            return "Q"
    if text in _WORDS["results"] and last == "V":
        return "C"
    if text in _WORDS["localizers"]:
        return "F"
    noun_follows = following.tag in ("NOUN", "PROPN", "NUM", "DET")
    acts = noun_follows and text in _WORDS["free_verbs"]
    if kind and not (acts and kind in "BOM"):
        return kind
    return _kind_of_tag(word, last, noun_follows=noun_follows)


def _kind_of_tag(word: _Word, last: str, *, noun_follows: bool) -> str:
    """Return the kind of a word that no list has: by its tag; of a verb, the dictionary may know a noun."""
    if word.tag in _KINDS_OF_TAGS:
        return _KINDS_OF_TAGS[word.tag]
    listed = _class(word.text)
    if word.tag not in ("VERB", "AUX", ""):
        return _KINDS_OF_CLASSES.get(listed, "M")
    if listed == "n" and last in "UQHLMVN" and not noun_follows:
        return "N"
    return "N" if last == "U" and len(word.text) > 1 else "V"


def bare_verb(text: str) -> str:
    """Strip doubling, result and direction from a verb: 看看 -> 看, 写完 -> 写; words of the dictionary stay whole."""
    half = text[: len(text) // 2]
    if half * 2 == text:
        return text if text in _WORDS["doubled_verbs"] else half
    for length in (2, 1):
        stem = text[:-length]
        ending = text[-length:]
        result = ending in _WORDS["results"] and not _class(text)
        if result or ending in ("给", "在"):
            if stem in _WORDS["free_verbs"] or _class(stem) == "v":
                return stem
    return text


# --- Rules ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Clause:
    """The words between two punctuation marks, and their kinds with an S behind; every index is that of a word."""

    texts: list[str]
    kinds: str

    def after(self, start: int, kinds: str) -> int:
        """Return the index behind the words of these kinds that start here."""
        end = start
        while self.kinds[end] in kinds:
            end += 1
        return end

    def pairs(self) -> list[tuple[int, str]]:
        """Return (index of the noun, verb) in the order of the nouns."""
        pairs: list[tuple[int, str]] = []
        served = -1  # the verb whose object stands before it, behind 把
        for index, kind in enumerate(self.kinds):
            if kind == "H":
                heads, end = self.nouns_after(index + 1)
                served = self.kinds.find("V", end)
                if served >= 0:
                    verb = bare_verb(self.texts[served])
                    pairs += [(head, verb) for head in heads]
            elif (kind == "V" and index != served) or (kind == "G" and "V" not in self.kinds):
                verb = bare_verb(self.texts[index])
                pairs += [(head, verb) for head in self.objects(index, verb)]
        return sorted(pairs, key=lambda pair: pair[0])

    def objects(self, index: int, verb: str) -> list[int]:
        """Return the objects behind the verb at an index, which is `verb` without result and direction."""
        end = self.after(index + 1, "CL")
        if not _WORDS["no_object"].isdisjoint((verb, self.texts[index])):
            return []
        if self.texts[end - 1][-1] in "在往向":
            return []
        if self.kinds[end] == "U":  # a relative clause without an object: the noun after 的 is it
            heads, _ = self.nouns_after(end + 1)
            return [head for head in heads if self.texts[head] not in _WORDS["adjuncts"]]
        if self.kinds[end : end + 2] == "KV":  # 清洗并晾干衣服
            end = self.after(end + 2, "CL")
        if self.kinds[end] == "G":
            end += 1
        clausal = verb in _WORDS["clausal"]
        heads, end = self.nouns_after(end, direct=clausal)
        if clausal and self.kinds[self.after(end, "BXTPR")] in "VAHJG":
            return []  # 说[他病了]
        return heads

    def nouns_after(self, start: int, *, direct: bool = False) -> tuple[list[int], int]:
        """Return the heads of coordinated noun phrases that start here (鸡翅、西兰花和草莓), and the index after them.

        `direct`: the verb before may take another verb (想, 开始), which then follows at once.
        """
        head, end = self.noun_after(start, direct=direct)
        if head is None:
            return [], end
        if self.kinds[end] == "K":
            coordinated, coordinated_end = self.nouns_after(end + 1, direct=True)
            if coordinated:
                return [head, *coordinated], coordinated_end
        return [head], end

    def noun_after(self, start: int, *, direct: bool) -> tuple[int | None, int]:
        """Return the head of a noun phrase that starts here, None if there is none, and the index after the phrase."""
        head = None
        index = start
        while self.kinds[index] != "S":
            kind = self.kinds[index]
            following = self.kinds[index + 1]
            if kind == "N":
                head = index
            elif kind == "U":
                if not self.noun_follows(index + 1):
                    return (head if following == "T" else None), index  # 看书的时候
                head = None
            elif kind == "F" and head is not None:
                if following != "U":
                    clausal = self.texts[index] in _WORDS["after_clauses"]
                    return (head if clausal else None), index
            elif kind not in "MQART" or head is not None:
                clause_end = self.clause_end(index, start, direct=direct)
                if clause_end is None:
                    break
                index = clause_end
                head = None
            index += 1
        return head, index

    def clause_end(self, index: int, start: int, *, direct: bool) -> int | None:
        """Return the index of the 的 that closes a relative clause beginning here; None if it has none.

        The noun phrase starts at `start`.
        """
        end = self.kinds.find("U", index + 1)
        inside = self.kinds[index:end]
        if end < 0 or not self.noun_follows(end + 1) or self.kinds[index] in "KO":
            return None
        if "是" in self.texts[index:end]:
            return None
        if index == start:
            if direct and self.kinds[self.after(index, "BX")] in "VPHG":
                return None  # 想[尽量控制自己的情绪]
            if inside[0] == "V" and inside[-1] == "R":
                return None  # 调整自己的心态
        if self.kinds[index] in "PB" and set(inside) <= set("PBRNTF"):
            return end  # 别人对我的看法
        if self.kinds[index - 1] not in "RN":
            return end
        # A subject stands before: its verb must reach the 的 without an object of its own.
        if inside[-1] not in "VCLA" or inside.count("V") > 1:
            return None
        return end if "N" not in inside or "P" in inside else None

    def noun_follows(self, index: int) -> bool:
        return self.kinds[self.after(index, "MQARTB")] == "N"
