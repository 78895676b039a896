"""Who answered the values of a figure: a rule of code, a judge, or people; and whether the judge was checked.

Every form of a study's report and of the gate shows a `Raters` by `describe_raters`.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from h2htalk.benchmark.observations import Observation
from h2htalk.data.records import read_record
from h2htalk.errors import ConfigError, quoted

# The kinds of raters, as `Observation.by` names them.
CODE = "code"
JUDGE = "judge"
PEOPLE = "people"
# How many planted replies of each kind (good and bad) a judge is asked about in each language.
WANTED = 20
# How many planted replies of a kind a judge may get wrong.
MOST_WRONG = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedCheck:
    """What a judge said of the planted replies of one language, whose truth is known.

    It passes where it was asked about `WANTED` of each kind, and is wrong about, or cannot be read on, at most
    `MOST_WRONG` of either (`pass_probability`). So the check finds judges that do not read, that give one answer to
    everything or that guess; it does not find errors on what is hard, because planted replies are plain.
    """

    language: str
    # The number of planted replies without a fault.
    good: int
    # The number of good replies in which the judge finds a fault.
    good_wrong: int
    # The number of planted replies with a fault.
    bad: int
    # The number of bad replies in which the judge misses the fault.
    bad_wrong: int
    # The number of good replies about which the judge's reply could not be read.
    good_unread: int = 0
    # The number of bad replies about which the judge's reply could not be read.
    bad_unread: int = 0
    # The number of good and bad replies that the judge has not been asked about yet, or whose calls failed.
    unanswered: int = 0
    # The number of good and bad replies that stand at turns which the study asks. None means that it is not known.
    at_turns: int | None = None
    # The arms whose replies the judge read beside the planted ones. An empty tuple means all arms.
    arms: tuple[str, ...] = ()

    @property
    def lacks_answers(self) -> bool:
        """Whether the judge has to be asked about more planted replies, or again."""
        return min(self.good, self.bad) < WANTED or self.unanswered > 0

    @property
    def passed(self) -> bool:
        """Whether the judge's answers count."""
        if self.lacks_answers:
            return False
        failed_on_good = self.good_wrong + self.good_unread
        failed_on_bad = self.bad_wrong + self.bad_unread
        return max(failed_on_good, failed_on_bad) <= MOST_WRONG

    @property
    def unread(self) -> int:
        """How many of the judge's replies could not be read; they are neither right nor wrong."""
        return self.good_unread + self.bad_unread

    @property
    def none_read(self) -> bool:
        """Whether the judge replied, and not one of its replies could be read."""
        replies = self.good + self.bad - self.unanswered
        return replies > 0 and self.unread == replies


def pass_probability(error_on_bad: float, error_on_good: float) -> float:
    """The probability that a judge passes its planted replies of one language, by its shares of errors on either kind.

    It is the binomial probability of at most `MOST_WRONG` errors in `WANTED` draws on each of the two kinds.
    """
    return _few_errors(error_on_bad) * _few_errors(error_on_good)


def _few_errors(share: float) -> float:
    """The probability of at most `MOST_WRONG` errors in `WANTED` draws."""
    terms = []
    for errors in range(MOST_WRONG + 1):
        ways = math.comb(WANTED, errors)
        terms.append(ways * share**errors * (1 - share) ** (WANTED - errors))
    return math.fsum(terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raters:
    """Who answered the values of a figure.

    `planted` holds a record for each language in which the judge read planted replies. It is None where the judge was
    not checked: studies that were stored before judges were checked have None.
    """

    # The number of values that each kind of raters (`Observation.by`) answered, in alphabetical order.
    counts: Mapping[str, int]
    # The number of values that were asked for, answered or not.
    total: int
    # The label of the judge; an empty text where the study has no judge.
    judge: str = ""
    planted: tuple[PlantedCheck, ...] | None = None
    # The judge's checks in the languages in which values are open and it answered none. None: no language is so.
    unanswering: tuple[PlantedCheck, ...] | None = None

    @property
    def asks_judge(self) -> bool:
        """Whether the judge answered any of the values, or none of those of a language."""
        return self.judged > 0 or self.unanswering is not None

    @property
    def answered(self) -> int:
        return sum(self.counts.values())

    @property
    def by_code(self) -> int:
        """Values in which a rule of code takes part."""
        return self._by(CODE)

    @property
    def judged(self) -> int:
        """Values in which the judge takes part."""
        return self._by(JUDGE)

    @property
    def by_people(self) -> int:
        """Values in which people take part."""
        return self._by(PEOPLE)

    def _by(self, rater: str) -> int:
        return sum(number for by, number in self.counts.items() if rater in kinds_of(by))

    @property
    def is_checked(self) -> bool:
        """Whether no value has to be doubted: the judge passed its planted replies, or it answered nothing."""
        if not self.judged:
            return True
        return self.planted is not None and not self.failed_checks

    @property
    def failed_checks(self) -> tuple[PlantedCheck, ...]:
        """The checks that the judge did not pass, where it answered anything."""
        if self.planted is None or not self.judged:
            return ()
        return tuple(check for check in self.planted if not check.passed)


def kinds_of(by: str) -> tuple[str, ...]:
    """The kinds of raters of a value: `judge and people` are two."""
    return tuple(by.split(" and "))


def raters_of(
    rows: Iterable[Observation],
    judge: str = "",
    planted: Sequence[PlantedCheck] | None = None,
    arms: Collection[str] = (),
) -> Raters:
    """Count who answered the observations of a figure.

    The check of a language in which the judge answered none of the observations is left out. With `arms`, a check is
    left out too whose planted replies the judge read beside replies of other arms alone. A language in which the judge
    answered without planted replies has a check that is not passed.
    """
    observed = list(rows)
    answered = [row for row in observed if row.value is not None]
    counts = Counter(row.by for row in answered if row.by)
    languages = {row.language for row in answered if JUDGE in kinds_of(row.by)}
    checks = None
    if planted is not None:
        checks = tuple(
            check for check in planted if check.language in languages and _is_beside(check, arms)
        )
        for language in sorted(languages - {check.language for check in checks}):
            checks += (PlantedCheck(language=language, good=0, good_wrong=0, bad=0, bad_wrong=0),)
    silent = {row.language for row in observed if row.value is None} - languages
    unanswering = None
    if judge and silent:
        unanswering = tuple(
            check for check in planted or () if check.language in silent and _is_beside(check, arms)
        )
    return Raters(
        counts=dict(sorted(counts.items())),
        total=len(observed),
        judge=judge,
        planted=checks,
        unanswering=unanswering,
    )


def is_doubted(planted: Sequence[PlantedCheck] | None, language: str, arm: str) -> bool:
    """Whether a judge's answers about replies of an arm and language do not count: it was not checked, or failed."""
    is_checked = False
    for check in planted or ():
        if check.language == language and _is_beside(check, (arm,)):
            is_checked = True
            if not check.passed:
                return True
    return not is_checked


def _is_beside(check: PlantedCheck, arms: Collection[str]) -> bool:
    """Whether a check's planted replies stood beside replies of some of these arms.

    An empty `arms` means all arms, and so does an empty `check.arms`.
    """
    if not arms or not check.arms:
        return True
    return not set(arms).isdisjoint(check.arms)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The words of `describe_raters` in one language.

    Attributes:
        kinds: the name of each kind of raters.
        joined: what stands between raters who share a value.
        separated: what stands between the parts of a text.
        count: a number of values, with `n` and `total`.
        nobody: the words for values that nobody answered.
        noted: a rater with a note, with `rater` and `note`.
        silent: the note of values that nobody answered, with `judge` and its `check`.
        unchecked: the note of a judge that was not checked.
        check: how a judge did on planted replies of a language.
        at_turns: added to `check`: how many replies stand at turns of the study, where not all do.
        unread: added to `check`: how many of the judge's replies could not be read.
        none_read: in place of `check`, where no reply of the judge could be read.
        unanswered: added to `check`: how many calls are missing.
        few: added to `check`: that there are fewer replies than wanted.
        none: in place of `check`, for a language without planted replies.
        failed: added where the judge's answers do not count.
        rule: what planted replies find and miss, by the shares of errors of `_ERRORS` on both kinds, and on one.
        languages: the name of each language.
    """

    kinds: Mapping[str, str]
    joined: str
    separated: str
    count: str
    nobody: str
    noted: str
    silent: str
    unchecked: str
    check: str
    at_turns: str
    unread: str
    none_read: str
    unanswered: str
    few: str
    none: str
    failed: str
    rule: str
    languages: Mapping[str, str]


_WORDS_FILE = "raters.toml"


@cache
def _words_of(language: str) -> _Words:
    tables = tomllib.loads((files("h2htalk.benchmark") / _WORDS_FILE).read_text(encoding="utf-8"))
    if language not in tables:
        raise ConfigError(
            f"no words in {quoted(language)} for who answered; choose from {', '.join(tables)}"
        )
    return read_record(_Words, tables[language], _WORDS_FILE)


def describe_raters(raters: Raters, language: str = "en", named: bool = True) -> str:
    """Say who answered, with counts: `judge openai:m@1a2b3c4d (the judge was not checked) 240 of 256; people ...`.

    With `named`, the text has the judge's name and how it was checked. Without, it is as short as
    `judge 240 of 256; people 16 of 256`.

    Raises ConfigError for a language without words.
    """
    words = _words_of(language)
    parts = []
    judge = raters.judge if named else ""
    note = describe_check(raters.planted, language) if named else ""
    for by, number in raters.counts.items():
        who = words.joined.join(_rater(kind, judge, words) for kind in kinds_of(by))
        if note and JUDGE in kinds_of(by):
            who = words.noted.format(rater=who, note=note)
            note = ""  # The note stands once, beside the first kind with a judge.
        parts.append(f"{who} {words.count.format(n=number, total=raters.total)}")
    missing = raters.total - raters.answered
    if missing or not parts:
        nobody = words.nobody
        if raters.total:
            nobody += " " + words.count.format(n=missing, total=raters.total)
        if judge and raters.unanswering is not None:
            check = describe_check(raters.unanswering, language)
            asked_judge = words.silent.format(judge=_rater(JUDGE, judge, words), check=check)
            nobody = words.noted.format(rater=nobody, note=asked_judge)
        parts.append(nobody)
    return words.separated.join(parts)


def _rater(kind: str, judge: str, words: _Words) -> str:
    name = words.kinds.get(kind, kind)
    if kind == JUDGE and judge:
        return f"{name} {judge}"
    return name


def describe_check(planted: Sequence[PlantedCheck] | None, language: str = "en") -> str:
    """Say how a judge did on planted replies, or that it was not checked."""
    words = _words_of(language)
    if not planted:
        return words.unchecked
    return words.separated.join(_check_text(check, words) for check in planted)


def _check_text(check: PlantedCheck, words: _Words) -> str:
    """One language's planted replies, and why the judge's answers do not count where they do not."""
    name = words.languages.get(check.language, check.language)
    if not check.good and not check.bad:
        return words.none.format(language=name) + words.failed
    if check.none_read:
        text = words.none_read.format(language=name, bad=check.bad, good=check.good)
    else:
        text = words.check.format(
            language=name,
            bad=check.bad - check.bad_unread,
            bad_wrong=check.bad_wrong,
            good=check.good - check.good_unread,
            good_wrong=check.good_wrong,
        )
        if check.unread:
            text += words.unread.format(bad_unread=check.bad_unread, good_unread=check.good_unread)
    total = check.good + check.bad
    if check.at_turns is not None and check.at_turns < total:
        text += words.at_turns.format(number=check.at_turns, total=total)
    if check.unanswered:
        text += words.unanswered.format(number=check.unanswered)
    if min(check.good, check.bad) < WANTED:
        text += words.few.format(wanted=WANTED)
    return text if check.passed else text + words.failed


# Shares of errors for each of which `describe_rule` names the probability that a judge passes.
_ERRORS = (0.05, 0.1, 0.2)


def describe_rule(language: str = "en") -> str:
    """Say what planted replies find of a judge and what they miss, with probabilities.

    Raises ConfigError for a language without words.
    """
    low, middle, high = _ERRORS
    return _words_of(language).rule.format(
        most=MOST_WRONG,
        wanted=WANTED,
        low=f"{100 * low:.0f}",
        middle=f"{100 * middle:.0f}",
        high=f"{100 * high:.0f}",
        both_low=f"{pass_probability(low, low):.2f}",
        both_middle=f"{pass_probability(middle, middle):.2f}",
        both_high=f"{pass_probability(high, high):.2f}",
        bad_high=f"{pass_probability(high, 0.0):.2f}",
    )
