"""Compute what the rules of `h2htalk curate check-guard` let through, and whom they refuse by chance.

    python tools/check_reader_rules.py

Every probability is exact, for readers whose answers are independent of each other: for each gate the probability that
a reader of a given sensitivity and rate of false alarms is certified in a language; for the texts that tell a reader
what to answer, the probability that a reader that obeys a share of them is named. `again` is the share of answers that
come out the same when a dialogue is asked about again because nothing was drawn; the others are drawn anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import bdtr
from scipy.stats import binom

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.certificate_rules import (
    ENOUGH_OF_KIND,
    LEAST_FOUND,
    LEAST_OF_KIND,
    MOST_ALARMS,
    RULES,
    is_obedient,
)
from h2htalk.data.readers.check_set import KINDS, load_check_set
from h2htalk.text.tables import Table

SENSITIVITIES = (0.6, 0.7, 0.8, 0.9, 0.95)
ALARMS = (0.05, 0.1, 0.2, 0.3)
OBEYED = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
READERS = ((0.95, 0.05), (0.85, 0.1), (0.7, 0.2))  # sensitivity and false alarms
AGAIN = (0.0, 0.5, 0.9)


def certified(sensitivity: float, alarms: float, kinds: Sequence[int], look_alikes: int) -> float:
    """The probability that a reader passes the rule of a gate with so many dialogues of each kind to find."""
    found = np.ones(1)  # its distribution
    for number in kinds:
        counts = np.arange(number + 1)
        of_kind = binom.pmf(counts, number, sensitivity)
        if number >= ENOUGH_OF_KIND:
            of_kind[counts < LEAST_OF_KIND * number] = 0
        found = np.convolve(found, of_kind)
    to_find = sum(kinds)
    enough = found[np.arange(to_find + 1) >= LEAST_FOUND * to_find].sum()
    most_alarms = max(
        number for number in range(look_alikes) if number <= MOST_ALARMS * look_alikes
    )
    return float(enough * bdtr(most_alarms, look_alikes, alarms))


def gate_table() -> Table:
    """The probabilities by gate; both languages have the same numbers of dialogues."""
    rows: list[tuple[object, ...]] = []
    counts = Counter(checked.kind.name for checked in load_check_set(LANGUAGES[0]))
    for rule in RULES:
        kinds = [counts[kind] for kind in rule.to_find]
        to_find = sum(kinds)
        look_alikes = counts[rule.look_alikes]
        for sensitivity in SENSITIVITIES:
            chances = [f"{certified(sensitivity, rate, kinds, look_alikes):.3f}" for rate in ALARMS]
            rows.append((f"{rule.gate} ({to_find} and {look_alikes})", sensitivity, *chances))
    header = (
        "gate (to find and look-alikes)",
        "sensitivity",
        *(f"false alarms {rate}" for rate in ALARMS),
    )
    return Table("Probability of being certified in a language", header, rows)


def difference_in(
    language: Language, sensitivity: float, alarms: float, again: float, obeyed: float
) -> np.ndarray:
    """The distribution of obeyed less defied in a language, from minus its number of pairs to that number."""
    difference = np.ones(1)
    for checked in load_check_set(language):
        if not checked.is_misled:
            continue
        right = sensitivity if KINDS[checked.label].to_find else 1 - alarms
        still_right = (again + (1 - again) * right) * (1 - obeyed)
        becomes_right = (1 - again) * right * (1 - obeyed)
        towards = right * (1 - still_right)
        away = (1 - right) * becomes_right
        difference = np.convolve(difference, (away, 1 - towards - away, towards))
    return difference


def named(sensitivity: float, alarms: float, again: float, obeyed: float, languages: int) -> float:
    """The probability that a reader is named that obeys this share of the sentences: in a language, or in all."""
    not_named_in_any = np.ones(1)
    for language in LANGUAGES[:languages]:
        difference = difference_in(language, sensitivity, alarms, again, obeyed)
        pairs = len(difference) // 2
        numbers = range(-pairs, pairs + 1)
        spared = np.array([not is_obedient(number, 0, pairs) for number in numbers])
        not_named_in_any = np.convolve(not_named_in_any, np.where(spared, difference, 0))
    pairs = len(not_named_in_any) // 2
    numbers = range(-pairs, pairs + 1)
    spared = np.array([not is_obedient(number, 0, pairs) for number in numbers])
    return float(1 - not_named_in_any[spared].sum())


def obedience_table() -> Table:
    """The probabilities of being named, for both languages and for one."""
    rows: list[tuple[object, ...]] = []
    for languages in (len(LANGUAGES), 1):
        for sensitivity, alarms in READERS:
            for again in AGAIN:
                chances = [
                    f"{named(sensitivity, alarms, again, share, languages):.3f}" for share in OBEYED
                ]
                rows.append((languages, sensitivity, alarms, again, *chances))
    header = (
        "languages",
        "sensitivity",
        "false alarms",
        "again",
        *(f"obeys {share}" for share in OBEYED),
    )
    return Table("Probability of being named as a reader that obeys", header, rows)


def lines() -> Iterator[str]:
    """Yield both tables."""
    yield gate_table().to_terminal()
    yield obedience_table().to_terminal()


if __name__ == "__main__":
    print(*lines(), sep="\n\n")
