"""Find Chinese verbs and the nouns they act on, from the order of the words.

A small parser is often wrong on Chinese, the word order rarely: after a verb, aspect, numbers and modifiers lead to the
head noun, the last of its phrase. So the rules read the kinds of words (`chinese_tokens`), clause by clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from h2htalk.analysis.verb_nouns import chinese_words as lists
from h2htalk.analysis.verb_nouns.chinese_tokens import LONGEST_CLAUSE, ChineseToken, Kind, chinese_tokens
from h2htalk.analysis.verb_nouns.pairs import VerbNounPair

if TYPE_CHECKING:
    from spacy.tokens import Doc

_MODIFIERS = Kind.NUMERAL + Kind.CLASSIFIER + Kind.ADJECTIVE + Kind.PRONOUN
_BEFORE_PREDICATE = Kind.ADVERB + Kind.AUXILIARY + Kind.TIME + Kind.PREPOSITION + Kind.PRONOUN
_PLACE_ENDINGS = frozenset("在进到向往成回入至为作")


def chinese_pairs(doc: Doc) -> list[VerbNounPair]:
    """The (verb, head noun of its direct object) pairs of a parsed text, in the order of its nouns.

    Verbs come without aspect and, where no dictionary has the compound, without result or direction (`写完` ->
    `写`, `打开` stays); verb-object compounds of two free words are cut (`喝水` -> 喝 水), bound ones (`散步`) give
    nothing. The noun of 把 and 将 is an object, the subject of 被 is none; of two objects the thing given counts.
    """
    pairs: list[tuple[int, int, VerbNounPair]] = []
    for words in _clauses(chinese_tokens(doc)):
        for noun, verb in _Clause(words).pairs():
            pairs.append((words[noun].token, noun, VerbNounPair(verb, words[noun].text)))
    return [pair for _, _, pair in sorted(pairs, key=lambda item: item[:2])]


def _clauses(words: Sequence[ChineseToken]) -> Iterator[list[ChineseToken]]:
    for stops, group in groupby(words, key=lambda token: token.kind == Kind.STOP):
        clause = [] if stops else list(group)
        yield from (clause[start : start + LONGEST_CLAUSE] for start in range(0, len(clause), LONGEST_CLAUSE))


class _Clause:
    """The words between two punctuation marks; every index counts `words`, `kinds` holds one character a word."""

    def __init__(self, words: Sequence[ChineseToken]) -> None:
        self.words = words
        self.kinds = "".join(token.kind for token in words)
        self.served: set[int] = set()  # verbs whose object stands before them, behind 把

    def kind(self, at: int) -> str:
        return self.kinds[at] if 0 <= at < len(self.kinds) else Kind.STOP

    def text(self, at: int) -> str:
        return self.words[at].text if 0 <= at < len(self.words) else ""

    def after(self, at: int, kinds: str) -> int:
        """The index behind the words of these kinds that start here."""
        while self.kind(at) in kinds:
            at += 1
        return at

    def pairs(self) -> list[tuple[int, str]]:
        """(index of the noun, verb), not in order."""
        pairs = [pair for at, kind in enumerate(self.kinds) if kind == Kind.DISPOSAL for pair in self._moved(at)]
        fronted = re.fullmatch("[MQARUN]*NR+[BX]*V[LCS]*", self.kinds)
        if fronted and self.text(self.kinds.rfind(Kind.NOUN)) not in lists.PEOPLE:
            verb, _ = self._chunk(self.kinds.find(Kind.VERB))
            if verb not in lists.NO_OBJECT:
                pairs.append((self.kinds.rfind(Kind.NOUN), verb))  # 你的感受我能理解
        only_gives = Kind.VERB not in self.kinds
        for at, kind in enumerate(self.kinds):
            if kind == Kind.VERB or (kind == Kind.GIVE and only_gives):
                pairs += self._verb(at)
        return pairs

    def _verb(self, at: int) -> list[tuple[int, str]]:
        verb, end = self._chunk(at)
        if at in self.served or any(word in lists.NO_OBJECT for word in (verb, self.text(at))):
            return []
        if self.kind(end) == Kind.OF:  # a relative clause without an object: the noun after 的 is it
            head, _ = self._noun_after(end + 1)
            return [] if head is None or self.text(head) in lists.ADJUNCTS else [(head, verb)]
        gives = self.kind(end) == Kind.GIVE and verb not in lists.MODALS  # 送给她一束花
        leads = not gives and self._leads_to_place(at, end)
        head, after = (None, end) if leads else self._object(at, verb, end + gives)
        if head is None and self.kinds[end : end + 2] == Kind.CONJUNCTION + Kind.VERB:
            _, after = self._chunk(end + 1)  # 清洗并晾干衣服
            head, after = self._object(at, verb, after)
        return [] if head is None else [(noun, verb) for noun in self._with_others(head, after)]

    def _chunk(self, at: int) -> tuple[str, int]:
        """(dictionary form of the verb that starts here, index after its results and aspect)."""
        verb, end = bare_verb(self.text(at)), at + 1
        while self.kind(end) == Kind.RESULT:
            joined = verb + self.text(end)
            if self.text(end) not in lists.ENDINGS and lists.word_class(joined)[:1] == "v":
                verb = joined
            end += 1
        return verb, self.after(end, Kind.ASPECT)

    def _leads_to_place(self, at: int, end: int) -> bool:
        """Whether a place or a state follows: 放在, 搬到, 切成."""
        text, ending = self.text(at), self.text(end - 1 - (self.kind(end - 1) == Kind.ASPECT))[-1]
        if ending in "到在":
            return ending == "在"
        unlisted = text[0] in lists.FREE_VERBS or lists.word_class(text)[:1] != "v"
        inside = ending in _PLACE_ENDINGS and text not in lists.WHOLE and unlisted
        return inside or self.text(end) in ("在", "到", "成", "进")

    def _object(self, at: int, verb: str, end: int) -> tuple[int | None, int]:
        """The direct object that follows and the index after it."""
        head, after = self._noun_after(end, direct=bool({verb, self.text(at)} & (lists.MODALS | lists.CLAUSAL)))
        if head is None:
            return None, after
        of = self.kinds.rfind(Kind.OF, end, head)
        own = self.kind(of - 1) == Kind.NOUN and Kind.VERB not in self.kinds[end:of]
        attribute = self.kind(at - 1) in Kind.NUMERAL + Kind.CLASSIFIER  # 一些有意义的事情
        if of > end and own and (attribute or self.text(head) in lists.ADJUNCTS):
            return of - 1, after  # 解决问题的方法
        rest = self.kind(self.after(after, _BEFORE_PREDICATE))
        acts = rest in Kind.VERB + Kind.ADJECTIVE + Kind.DISPOSAL + Kind.PASSIVE + Kind.GIVE
        return (None if acts and verb in lists.CLAUSAL - lists.PERCEIVING else head), after  # 说[他病了]

    def _noun_after(self, at: int, *, direct: bool = False) -> tuple[int | None, int]:
        """(head of the noun phrase that starts here or None, index after the phrase).

        `direct`: the verb before may take another verb (想, 开始), which then follows at once.
        """
        head: int | None = None
        start = at
        while (kind := self.kind(at)) != Kind.STOP:
            if kind == Kind.NOUN:
                head = at
            elif kind == Kind.OF:
                if not self._noun_follows(at + 1):
                    time = self.kind(self.after(at + 1, Kind.NUMERAL + Kind.CLASSIFIER)) == Kind.TIME
                    return (head if time else None), at  # 看书的时候
                head = None
            elif kind == Kind.LOCALIZER and head is not None:
                if self.text(at) in lists.AFTERWARDS:
                    return head, at
                if self.kind(at + 1) != Kind.OF:
                    return None, at
            elif kind in _MODIFIERS + Kind.TIME and head is None:
                pass
            elif (jump := self._of_after(at, start, direct)) is not None:
                at, head = jump, None
            else:
                break
            at += 1
        return head, at

    def _of_after(self, at: int, start: int, direct: bool) -> int | None:
        """The 的 that closes a relative clause or an attribute beginning here, None if there is none."""
        first = self.after(at, Kind.ADVERB + Kind.AUXILIARY)
        verbal = self.kind(first) in Kind.VERB + Kind.PREPOSITION + Kind.DISPOSAL + Kind.GIVE
        if direct and at == start and verbal:
            return None  # 想[尽量控制自己的情绪]
        end = self.kinds.find(Kind.OF, at + 1)
        inside = self.kinds[at:end]
        if end < 0 or self.kind(at) in Kind.CONJUNCTION + Kind.PARTICLE or not self._noun_follows(end + 1):
            return None
        if not set(Kind.PASSIVE + Kind.PARTICLE + Kind.MANNER).isdisjoint(inside):
            return None
        if "是" in (token.text for token in self.words[at:end]):
            return None
        if at == start and self.kind(at) == Kind.VERB and inside[-1] == Kind.PRONOUN:
            return end if self.text(at) in lists.STATIVE else None  # 适合自己的工作, 调整自己的心态
        phrase = Kind.PREPOSITION if self.kind(at - 1) == Kind.NOUN else Kind.PREPOSITION + Kind.ADVERB
        if self.kind(at) in phrase and set(inside) <= set("PBRNTF"):
            return end  # 别人对我的看法
        if self.kind(at - 1) in Kind.PRONOUN + Kind.NOUN:
            # A subject stands before: its verb must reach the 的 without an object of its own.
            bare = (Kind.NOUN in inside and Kind.PREPOSITION not in inside) or Kind.NUMERAL in inside
            reaches = inside[-1] in Kind.VERB + Kind.RESULT + Kind.ASPECT + Kind.ADJECTIVE
            return end if reaches and not bare and inside.count(Kind.VERB) <= 1 else None
        return end

    def _noun_follows(self, at: int) -> bool:
        return self.kind(self.after(at, _MODIFIERS + Kind.TIME + Kind.ADVERB)) == Kind.NOUN

    def _with_others(self, head: int, at: int) -> list[int]:
        """The head and the nouns coordinated with it: 鸡翅、西兰花和一盒草莓."""
        heads = [head]
        while self.kind(at) == Kind.CONJUNCTION:
            other, end = self._noun_after(at + 1, direct=True)
            goes_on = self.kind(end) not in Kind.STOP + Kind.CONJUNCTION + Kind.PARTICLE + Kind.ASPECT
            if other is None or goes_on:
                break
            heads.append(other)
            at = end
        return heads

    def _moved(self, at: int) -> list[tuple[int, str]]:
        """The object after 把 or 将, with the verb behind it."""
        head, end = self._noun_after(at + 1)
        verb = self.kinds.find(Kind.VERB, end)
        if head is None or verb < 0:
            return []
        form, _ = self._chunk(verb)
        self.served.add(verb)
        return [(noun, form) for noun in self._with_others(head, end)]


def bare_verb(text: str) -> str:
    """Strip doubling, result and direction from a verb: 看看, 看一看 -> 看, 写完 -> 写; 打开 is in the dictionary."""
    if text[1:] == "一" + text[0]:
        return text[0]
    if text[: len(text) // 2] * 2 == text:
        return text if text in lists.DOUBLED else text[: len(text) // 2]
    for size in (2, 1):
        stem, ending = text[:-size], text[-size:]
        if not stem or (stem not in lists.FREE_VERBS and lists.word_class(stem)[:1] != "v"):
            continue
        cut_always = ending in lists.ENDINGS and stem in lists.FREE_VERBS and text not in lists.WHOLE
        if cut_always or (ending in lists.AFTER_VERB and lists.word_class(text)[:1] != "v"):
            return stem
    return text
