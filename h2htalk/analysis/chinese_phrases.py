"""Noun phrases of a Chinese clause: where one ends, which word heads it, what a relative clause before it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from h2htalk.analysis import chinese_words as lists
from h2htalk.analysis.chinese_kinds import Kind, Piece

_MODIFIERS = Kind.NUMERAL + Kind.CLASSIFIER + Kind.ADJECTIVE + Kind.PRONOUN
# Modifier and head that are written as one word but are two: 热汤, 小狗.
_PLAIN_ADJECTIVES = frozenset("热冷新旧老小大好长短黑白破脏")
_PLAIN_NOUNS = frozenset("猫狗鸟鱼兔猪牛羊马树花车船碗杯锅瓶床灯茶汤粥饭菜歌信书画雨雪梦鞋伞球琴笔票店房")
# Nouns of one character that stand alone, whatever is before them.
_STANDING = _PLAIN_NOUNS | lists.FREE_NOUNS
# What may stand between a subject and its verb.
BEFORE_VERB = Kind.ADVERB + Kind.AUXILIARY + Kind.TIME + Kind.ASPECT
# A person after these is no subject of the verb that follows: 帮我抬行李.
_HELPING = frozenset("帮替给陪让教请叫跟对")

# Modal verbs that take people and things as often as deeds: 喜欢会唱歌的人.
_FONDNESS = frozenset(("喜欢", "爱", "最爱", "讨厌"))


@dataclass(slots=True)
class Phrases:
    """The words between two punctuation marks; places are indices into `words`, kinds one character a word."""

    words: Sequence[Piece]
    kinds: str = field(init=False)
    # Verbs that need no object after them: theirs stands before, or they repeat another (看一看).
    served: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.kinds = "".join(piece.kind for piece in self.words)

    def kind(self, at: int) -> str:
        return self.kinds[at] if 0 <= at < len(self.kinds) else Kind.STOP

    def text(self, at: int) -> str:
        return self.words[at].text if 0 <= at < len(self.words) else ""

    def head(self, at: int) -> str:
        """The noun that ends here, with the pieces before it that make one word: 咖啡|馆, 充电|器."""
        text = self.text(at)
        if len(text) > 1:
            return _last_noun(text)
        before = self.text(at - 1)
        joined = before + text
        if self.kind(at - 1) == Kind.NOUN and len(joined) > 2 and lists.is_noun(joined):
            return joined
        start = at
        while text not in _STANDING and self.kind(start - 1) == Kind.NOUN and len(self.text(start - 1)) == 1:
            start -= 1
        return "".join(self.text(place) for place in range(start, at + 1))  # 青|团, 冰|美|式

    def noun_after(self, at: int, *, direct: bool = False) -> tuple[int | None, int]:
        """(head of the noun phrase that starts here or None, place after the phrase).

        `direct`: a verb whose object may be what another verb does (想, 开始); a verb right after it is that one.
        """
        head: int | None = None
        start = at
        while (kind := self.kind(at)) != Kind.STOP:
            if kind == Kind.NOUN:
                head = at
            elif kind == Kind.OF:
                if not self._continues(at + 1):
                    return (head if self._time_follows(at + 1) else None), at
                head = None
            elif kind == Kind.TIME and head is None and self.kind(at + 1) != Kind.PARTICLE:
                pass
            elif kind == Kind.LOCALIZER and head is not None:
                if self.text(at) in lists.AFTERWARDS:
                    return head, at
                if self.kind(at + 1) != Kind.OF and not self._described_at(at + 1):
                    return None, at
            elif kind in _MODIFIERS and head is None:
                pass
            elif kind == Kind.NUMERAL and self.text(at)[0] == "第" and self._noun_follows(at):
                head = None  # 人生第一个马拉松
            elif (jump := self._of_after(at, start, head, direct)) is not None:
                at, head = jump, None
            else:
                break
            at += 1
        return head, at

    def _described_at(self, at: int) -> bool:
        """Whether a subject and its verb stand here and lead to a noun: 厨房里[妈妈用过的]碗."""
        return self.kind(at) in Kind.NOUN + Kind.PRONOUN and self._of_after(at + 1, at, at, False) is not None

    def _continues(self, at: int) -> bool:
        """Whether a noun follows, perhaps after modifiers."""
        while self.kind(at) in _MODIFIERS + Kind.ADVERB + Kind.TIME:
            at += 1
        return self.kind(at) == Kind.NOUN or self._of_after(at, at, None, False) is not None

    def _of_after(self, at: int, start: int, head: int | None, direct: bool) -> int | None:
        """The 的 that closes a relative clause or an attribute beginning here, None if there is none."""
        if (
            at == start
            and self.kind(at) == Kind.VERB
            and (direct or self.kinds[: self.kinds.find(Kind.OF, at)][-1:] == Kind.PRONOUN)
        ) or (direct and at == start and self._verb_phrase(at)):
            return None
        end = self.kinds.find(Kind.OF, at + 1)
        if (
            end < 0
            or self.kind(at) in (Kind.GIVE + Kind.CONJUNCTION + Kind.PARTICLE + Kind.STOP)
            or not self._noun_follows(end + 1)
        ):
            return None
        inside = self.kinds[at:end]
        if any(kind in inside for kind in Kind.PASSIVE + Kind.PARTICLE + Kind.MANNER):
            return None
        first_noun = self._first_bare(at, end)
        if head is not None or self.kind(at - 1) in (Kind.PRONOUN + Kind.NOUN):
            # A subject stands before: its verb must reach the 的 without an object of its own.
            if (
                first_noun is not None
                or inside[-1]
                not in Kind.VERB + Kind.RESULT + Kind.ASPECT + Kind.ADJECTIVE + Kind.TIME + Kind.PRONOUN
            ):
                return None
            if inside[-1] == Kind.PRONOUN and not self._receives(end - 1):
                return None
            tail = inside[inside.rfind(Kind.VERB) :]
            if Kind.ASPECT not in tail and any(
                kind in tail for kind in Kind.NUMERAL + Kind.CLASSIFIER + Kind.TIME
            ):
                return None
            return end if inside.count(Kind.VERB) <= 1 or Kind.CLASSIFIER not in inside else None
        return end

    def _verb_phrase(self, at: int) -> bool:
        """Whether what follows a modal verb is what one wants to do: 想[用老照片剪一部片子], 想[尽量控制情绪]."""
        if self.text(at - 1) not in lists.MODALS or self.text(at - 1) in _FONDNESS:
            return False
        if self.kind(at) in Kind.PREPOSITION + Kind.GIVE + Kind.DISPOSAL:
            return True
        start = at
        while self.kind(at) in Kind.ADVERB + Kind.AUXILIARY:
            at += 1
        return at > start and self.kind(at) == Kind.VERB

    def _receives(self, at: int) -> bool:
        """Whether the person before 的 is given the head (借给她的书), and no owner of it (调整自己的心态)."""
        verb = at - 1
        while self.kind(verb) in Kind.RESULT + Kind.ASPECT:
            verb -= 1
        return self.kind(verb) in Kind.GIVE + Kind.PREPOSITION or bare_verb(self.text(verb)) in lists.GIVING

    def _first_bare(self, at: int, end: int) -> int | None:
        """The first noun in a stretch that is not the object of a preposition."""
        preposed = False
        for place in range(at, end):
            if self.kind(place) in Kind.PREPOSITION + Kind.CONJUNCTION:
                preposed = True
            elif self.kind(place) == Kind.VERB:
                preposed = False
            elif self.kind(place) == Kind.NOUN and not preposed:
                return place
        return None

    def _time_follows(self, at: int) -> bool:
        """Whether what 的 leads to is a time, so that the clause before it keeps its object: 看书的时候."""
        while self.kind(at) in Kind.NUMERAL + Kind.CLASSIFIER:
            at += 1
        return self.kind(at) == Kind.TIME

    def _noun_follows(self, at: int) -> bool:
        while self.kind(at) in _MODIFIERS + Kind.TIME + Kind.ADVERB:
            at += 1
        return self.kind(at) == Kind.NOUN

    def with_others(self, head: int, at: int, *, before_verb: bool = False) -> list[int]:
        """The head and the nouns coordinated with it: 鸡翅、西兰花和一盒草莓."""
        heads = [head]
        while self.kind(at) == Kind.CONJUNCTION:
            other, end = self.noun_after(at + 1, direct=True)
            follows = self.kind(end)
            if other is None or (
                not before_verb and follows not in Kind.STOP + Kind.CONJUNCTION + Kind.PARTICLE + Kind.ASPECT
            ):
                break
            heads.append(other)
            at = end
        return heads

    def given(self, at: int) -> tuple[int | None, int]:
        """What is given, after a person: 送给她一束花."""
        if self.kind(at) == Kind.PRONOUN and self.kind(at + 1) != Kind.OF:
            return self.noun_after(at + 1)
        person = at
        while self.kind(person) == Kind.NOUN:
            person += 1
        if person > at and self.kind(person) in Kind.NUMERAL + Kind.CLASSIFIER:
            return self.noun_after(person)
        if self.kind(at) == Kind.PRONOUN:
            head, after = self.noun_after(at)
            if self.kind(after) in Kind.NUMERAL + Kind.CLASSIFIER:
                return self.noun_after(after)
            return (None if head is None or self.text(head) in lists.PEOPLE else head), after  # 我借给她的书
        return None, at

    def chunk(self, at: int) -> tuple[str, int]:
        """(dictionary form of the verb that starts here, place after its results and aspect)."""
        text = self.text(at)
        end = at + 1
        if (
            self.text(end) in ("一", "了", "不", "没")
            and self.text(end + 1)[:1] == text[:1]
            and self.kind(end + 1) == Kind.VERB
        ):
            self.served.add(end + 1)
            text, end = self.text(end + 1), end + 2  # 看一看, 喝不喝
        verb = bare_verb(text)
        if self.text(end) in ("不", "得") and self.kind(end + 1) == Kind.RESULT:
            end += 2  # 记不住
        while self.kind(end) == Kind.RESULT:
            joined = verb + self.text(end)
            if self.text(end) not in lists.ENDINGS and lists.word_class(joined)[:1] == "v":
                verb = joined
            end += 1
        while self.kind(end) == Kind.ASPECT:
            end += 1
        return verb, end

    def subject(self, at: int) -> bool:
        """Whether a subject stands before the verb, adverbs and prepositional phrases between."""
        before = at - 1
        while self.kind(before) in BEFORE_VERB or (
            self.kind(before) == Kind.VERB and self.text(before) in lists.MODALS
        ):
            before -= 1
        return self.kind(before) in Kind.PRONOUN + Kind.NOUN and self.text(before - 1) not in _HELPING

    def predicate(self, at: int) -> bool:
        """Whether what follows says something of the noun before it."""
        while self.kind(at) in Kind.ADVERB + Kind.AUXILIARY + Kind.TIME + Kind.PREPOSITION + Kind.CONJUNCTION:
            with_person = (
                self.kind(at + 1) == Kind.PRONOUN and self.kind(at + 2) != Kind.OF
            )  # 有人和她一起做饭
            if self.kind(at) == Kind.CONJUNCTION and not with_person:
                return False
            at += 2 if with_person else 1
        return self.kind(at) in Kind.VERB + Kind.ADJECTIVE + Kind.DISPOSAL + Kind.PASSIVE + Kind.GIVE


def _last_noun(text: str) -> str:
    """The head of a compound that came as one word: 生日蛋糕 -> 蛋糕, 新手机 -> 手机, 热汤 -> 汤; 机器人 stays."""
    if len(text) == 2:
        return text[1] if text[0] in _PLAIN_ADJECTIVES and text[1] in _PLAIN_NOUNS else text
    front, head = text[:-2], text[-2:]
    if len(text) < 3 or not lists.is_noun(head) or text in lists.ONE_THING:
        return text
    if len(front) == 1:
        return head if front in _PLAIN_ADJECTIVES else text
    return head if lists.word_class(front) else text


def bare_verb(text: str) -> str:
    """A verb without doubling, result and direction: 看看 -> 看, 写完 -> 写; 打开 stays, a dictionary has it."""
    if text in lists.DOUBLED:
        return text
    if len(text) % 2 == 0 and text[: len(text) // 2] == text[len(text) // 2 :]:
        return text[: len(text) // 2]
    for size in (2, 1):
        stem, ending = text[:-size], text[-size:]
        if not stem or (stem not in lists.FREE_VERBS and lists.word_class(stem)[:1] != "v"):
            continue
        if (
            text not in lists.WHOLE
            and stem in lists.FREE_VERBS
            and ending in ("完", "给", "在", "光", "掉", "好", "错", "够", "成", "进")
        ):
            return stem
        if ending in lists.AFTER_VERB and lists.word_class(text)[:1] != "v":
            return stem
    return text
