"""Chinese verbs and the nouns they act on, from a parse and from the order of the words.

A small parser is often wrong on Chinese, the surface rarely: after a verb, aspect, numbers and modifiers lead to the
head noun, which is the last of its phrase. So the rules walk over kinds of words (`chinese_pieces.py`), clause by
clause, and ask the tree only where the order leaves two readings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h2htalk.analysis import chinese_words as lists
from h2htalk.analysis.chinese_kinds import LONGEST_CLAUSE, Kind, Piece
from h2htalk.analysis.chinese_phrases import BEFORE_VERB, Phrases
from h2htalk.analysis.chinese_pieces import pieces
from h2htalk.analysis.verb_nouns import Pair

if TYPE_CHECKING:
    from spacy.tokens import Doc

_PLACE_ENDINGS = frozenset("在进到向往成回入至为作")
# Verbs whose 到 leads to a place (搬到窗边), not to a result (收到信).
_CARRYING = frozenset("送搬带寄放丢扔改挂抬扛推贴转调写拖排装塞倒存移塞运投")
_DURATIONS = frozenset(
    ("好久", "很久", "许久", "多久", "半天", "会儿", "一会儿", "片刻", "整天", "整晚", "整夜")
)


def chinese_pairs(doc: Doc) -> list[Pair]:
    """The (verb, head noun of its direct object) pairs of a parsed text, in the order of its nouns.

    Verbs come without aspect and, where no dictionary has the compound, without result or direction (`写完` ->
    `写`, `打开` stays); verb-object compounds of two free words are cut (`喝水` -> 喝 水), bound ones (`散步`) give
    nothing. The noun of 把 and 将 is an object, the subject of 被 is none; of two objects the thing given counts.
    """
    found: list[tuple[int, int, Pair]] = []
    for clause in _clauses(pieces(doc)):
        reading = _Clause(clause)
        found += [(clause[n].token, n, pair) for n, pair in reading.pairs()]
    return [pair for _, _, pair in sorted(found, key=lambda item: item[:2])]


def _clauses(words: Sequence[Piece]) -> Iterator[list[Piece]]:
    clause: list[Piece] = []
    for piece in words:
        if piece.kind != Kind.STOP:
            clause.append(piece)
        if clause and (piece.kind == Kind.STOP or len(clause) == LONGEST_CLAUSE):
            yield clause
            clause = []
    if clause:
        yield clause


@dataclass(slots=True)
class _Clause(Phrases):
    """A clause with its verbs."""

    def pairs(self) -> list[tuple[int, Pair]]:
        """(place of the noun, pair), in the order found."""
        found: list[tuple[int, Pair]] = []
        for at, kind in enumerate(self.kinds):
            if kind == Kind.DISPOSAL:
                found += self._moved(at)
        for at, kind in enumerate(self.kinds):
            if kind == Kind.VERB or (kind == Kind.GIVE and self._gives(at)):
                found += self._verb(at)
        return found

    def _pair(self, verb: str, noun: int) -> tuple[int, Pair]:
        last = self.text(noun)[-1]
        bound = last in lists.SEPARABLE.get(verb[0], "") and (last == self.text(noun) or last in "澡觉")
        return noun, Pair(verb, last if bound else self.head(noun))  # 洗个热水澡: the word is 洗澡

    # Verbs

    def _gives(self, at: int) -> bool:
        """Whether this 给 is a verb: it has an aspect, or no verb stands before it, and none follows its person."""
        if self.kind(at + 1) == Kind.ASPECT:
            return Kind.VERB not in self.kinds[at + 1 :]
        if self.kind(at - 1) in Kind.VERB + Kind.RESULT + Kind.NOUN:
            return False
        return Kind.VERB not in self.kinds[at + 1 :]

    def _verb(self, at: int) -> list[tuple[int, Pair]]:
        verb, end = self.chunk(at)
        if at in self.served or verb in lists.LINKING or self._linked(at):
            return []
        if self.kind(end) == Kind.OF or (
            self.kind(end) in Kind.TIME + Kind.ADVERB + Kind.PRONOUN + Kind.NUMERAL and self._reaches_of(end)
        ):
            return self._described(at, verb, end)
        if self.kind(end) == Kind.GIVE and verb not in lists.MODALS:
            head, after = self.given(end + 1)
        elif len(self.text(at)) == 2 and self.text(at)[1] == "给":
            head, after = self.given(end)
        elif self._leads_to_place(at, end):
            head, after = None, end
        else:
            head, after = self._object(at, verb, end)
        if head is None:
            return self._topic(at, verb, end) or self._shared(at, verb, end)
        return [self._pair(verb, noun) for noun in self.with_others(head, after)]

    def _linked(self, at: int) -> bool:
        return self.text(at) in lists.LINKING or self.text(at) in lists.CAUSING

    def _reaches_of(self, at: int) -> bool:
        while self.kind(at) in Kind.TIME + Kind.ADVERB + Kind.PRONOUN + Kind.NUMERAL + Kind.CLASSIFIER:
            at += 1
        return self.kind(at) == Kind.OF and self.kind(at - 1) != Kind.PRONOUN

    def _leads_to_place(self, at: int, end: int) -> bool:
        """Whether a place or a state follows: 放在, 搬到, 切成."""
        text, last = self.text(at), self.text(end - 1)
        if self.kind(end - 1) == Kind.ASPECT:
            last = self.text(end - 2) if end - 2 > at else text[1:]
        ending = last if last in _PLACE_ENDINGS and end - 1 > at else text[-1] if len(text) == 2 else ""
        if self.kind(end) == Kind.NUMERAL and ending == "进":
            return False
        if ending == "到":
            return text[0] in _CARRYING
        if ending == "在":
            return True
        if ending in _PLACE_ENDINGS and len(text) == 2 and text[0] in lists.FREE_VERBS:
            return text not in lists.WHOLE
        unlisted = lists.word_class(text)[:1] != "v"
        return (ending in _PLACE_ENDINGS and unlisted) or (
            self.text(end) in ("在", "到", "成", "进") and text not in lists.FEELING
        )

    def _object(self, at: int, verb: str, end: int) -> tuple[int | None, int]:
        """The direct object that follows, of two the thing given."""
        if self.kind(end) in Kind.MANNER + Kind.WAY:
            return None, end
        head, after = self.noun_after(
            end, direct=verb in lists.MODALS or verb in lists.CLAUSAL or verb in ("请", "帮")
        )
        if head is None:
            return self._time_loved(verb, end), after
        if self._closes_clause(at, head, end):
            return (None if verb in lists.GOING else self._own_object(end, head)), after
        if self.kind(after) in Kind.NUMERAL + Kind.CLASSIFIER and verb in lists.GIVING:
            thing, after_thing = self.noun_after(after)
            if thing is not None:
                return thing, after_thing
        if verb in lists.GOING and not self._separated(verb, head):
            return None, after
        if self._together(at, head) or (verb == "做" and self._is_person(head)):
            return None, after
        if (
            verb in lists.CLAUSAL
            and self.predicate(after)
            and (verb not in lists.PERCEIVING or self.text(head) in lists.PEOPLE)
        ):
            return None, after
        if self.text(head) == "人" and (
            (verb in ("有", "没", "没有") and self.predicate(after))
            or (self.text(head - 1) == "个" and self.text(head - 2) == "一")
        ):
            return None, after
        return head, after

    def _time_loved(self, verb: str, at: int) -> int | None:
        """A time that is felt for: 喜欢秋天, 想起那个夏天."""
        while self.kind(at) in Kind.NUMERAL + Kind.CLASSIFIER:
            at += 1
        ends = self.kind(at + 1) in Kind.STOP + Kind.PARTICLE
        felt = verb in lists.FEELING and self.kind(at) == Kind.TIME and self.text(at) not in _DURATIONS
        return at if felt and ends else None

    def _own_object(self, end: int, head: int) -> int | None:
        """Inside a relative clause, the object before its 的."""
        of = self.kinds.rfind(Kind.OF, end, head)
        place = of - 1
        return place if self.kind(place) == Kind.NOUN else None

    def _closes_clause(self, at: int, head: int, end: int) -> bool:
        """Whether `verb noun 的 head` is a relative clause (研究鲸鱼的女生), not a possessive (看妈妈的信)."""
        of = self.kinds.rfind(Kind.OF, end, head)
        if of < 0 or self.kind(of - 1) != Kind.NOUN or Kind.VERB in self.kinds[end:of]:
            return False
        if self.text(head) in lists.ADJUNCTS or self.text(head) in lists.TIMES:
            return True
        if self.kind(at - 1) in Kind.NUMERAL + Kind.CLASSIFIER:
            return True
        return (
            self.text(head) in lists.PEOPLE and self.text(of - 1) not in lists.PEOPLE and not self.subject(at)
        )

    def _separated(self, verb: str, head: int) -> bool:
        """Whether an intransitive verb has the rest of its own word as object: 睡个好觉; 回邮件 is no way home."""
        noun = self.text(head)
        return noun in lists.SEPARABLE.get(verb[0], "") or (verb == "回" and noun in lists.MESSAGES)

    def _is_person(self, head: int) -> bool:
        """Whether the noun is what somebody is by trade: who 做工程师 is one, and makes none."""
        noun = self.text(head)
        return noun in lists.PEOPLE or (len(noun) > 1 and noun[-1] in "师员家")

    def _together(self, at: int, head: int) -> bool:
        """Whether verb and noun are one bound word with nothing between: 聊天, 聊聊天."""
        first, noun = self.text(at)[0], self.text(head)
        return (
            head == at + 1
            and noun in lists.SEPARABLE.get(first, "")
            and noun not in lists.COMPOUNDS.get(first, "")
        )

    # Objects before their verb

    def _moved(self, at: int) -> list[tuple[int, Pair]]:
        """把 and 将: the noun that follows, the verb after it."""
        head, end = self.noun_after(at + 1)
        if Kind.VERB not in self.kinds[end:]:  # no verb left: 把伞借给我的男孩
            head = end = at + 1
            while self.kind(end + 1) == Kind.NOUN:
                head = end = end + 1
            end += 1
        verb = end
        while self.kind(verb) not in Kind.VERB + Kind.GIVE + Kind.STOP:
            verb += 1
        if head is None or self.kind(verb) == Kind.STOP:
            return []
        form, _ = self.chunk(verb)
        self.served.add(verb)
        heads = self.with_others(head, end, before_verb=True)
        return [self._pair(form, noun) for noun in heads]

    def _described(self, at: int, verb: str, end: int) -> list[tuple[int, Pair]]:
        """A relative clause: the noun after 的 is the object when the clause has a subject and no object."""
        of = self.kinds.find(Kind.OF, end)
        head, _after = self.noun_after(of + 1)
        if (
            head is None
            or self.kind(at - 1) == Kind.MANNER  # 洗得发白的衬衫
            or self.text(head) in lists.ADJUNCTS
            or verb in lists.GOING
        ):
            return []
        if Kind.PASSIVE in self.kinds[:at] or (
            not self.subject(at) and self.text(head) in lists.PEOPLE and verb not in lists.FEELING
        ):
            return []
        return [self._pair(verb, head)]

    def _topic(self, at: int, verb: str, end: int) -> list[tuple[int, Pair]]:
        """An object that is the topic: 账单你付了吗, 连鞋都刷了."""
        if verb in lists.GOING or verb in lists.MODALS or not self._nothing_after(verb, end):
            return []
        before = at - 1
        while self.kind(before) in BEFORE_VERB:
            before -= 1
        even = max((at for at in range(before) if self.text(at) == "连"), default=before)
        if (
            self.kind(before) == Kind.NOUN
            and Kind.VERB not in self.kinds[even:before]
            and even < before
            and self.text(before) not in lists.PEOPLE
        ):
            return [self._pair(verb, before)]
        if self.kinds[before - 2 : before + 1] == "MQN" and self.text(before + 1) in ("都", "也"):
            return [self._pair(verb, before)]  # 一句话都没说
        if self.kind(before) != Kind.PRONOUN and self.text(before) not in lists.PEOPLE:
            return []
        topic = before - 1
        while self.kind(topic) in Kind.ADVERB + Kind.TIME:
            topic -= 1
        if (
            self.kind(topic) != Kind.NOUN
            or self.text(topic) in lists.PEOPLE
            or any(k in self.kinds[:topic] for k in Kind.VERB + Kind.PREPOSITION)
        ):
            return []
        return [self._pair(verb, topic)]

    def _nothing_after(self, verb: str, end: int) -> bool:
        if self.kind(end) == Kind.PRONOUN and verb in lists.GIVING:
            end += 1
        return self.kind(end) in Kind.STOP + Kind.PARTICLE + Kind.GIVE

    def _shared(self, at: int, verb: str, end: int) -> list[tuple[int, Pair]]:
        """The first of two verbs that share an object: 清洗并晾干衣服."""
        if (
            self.kind(end) != Kind.CONJUNCTION
            or self.text(end) == "、"
            or self.kind(end + 1) != Kind.VERB
            or verb in lists.INTRANSITIVE
            or verb in lists.MODALS
        ):
            return []
        form, after = self.chunk(end + 1)
        head, _ = self._object(end + 1, form, after)
        return [] if head is None else [self._pair(verb, head)]
