"""Choose compositions so that planted replies, taken together, have the forms of a model's replies.

The nearest composition of each wording would not do: a set of nearest ones is more alike than the replies that it is to
hide among, and what all wordings lack is lacking in all of them. So one composition a wording is chosen such that the
means of the whole set are those of the model's replies, for every value that somebody could count without reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from h2htalk.text.counting import split_sentences

_SWEEPS = 4  # over all wordings
# Of the model's replies: the shares above them are matched beside the means.
_QUANTILES = (0.2, 0.5, 0.8)
_RIDGE = 0.2  # of a value's variance, so that no rare pair of values decides
_GROUPS = [",，、", ".。", "!！", "?？", ":：", ";；", "-—–", "…", "'’", '"“”「」', "()（）", "*#"]
_SMALL_AFTER_STOP = re.compile(r"[.!?] +[a-z]")
_CAPITAL_WITHIN = re.compile(r"[a-z,;] +[A-Z]")
_MARK = re.compile(r"[^\w\s]")
_LISTING = "、"
Values = NDArray[np.float64]


def form_values(text: str) -> list[float]:
    """Return what can be counted of a reply without reading it."""
    sentences = chain.from_iterable(map(split_sentences, text.splitlines()))
    lengths = [len(sentence) for sentence in sentences] or [0]
    lengths_array = np.array(lengths)
    size = max(1, len(text))
    letters = sum(map(str.isalpha, text))
    marks = len(_MARK.findall(text))
    capitals = sum(map(str.isupper, text))
    digits = sum(map(str.isdigit, text))
    stripped = text.strip()
    last = stripped[-1:]
    values: list[float] = [len(text), len(text.split()), len(lengths), len(text.splitlines())]
    values += [lengths[0], lengths[-1], max(lengths), min(lengths)]
    values += [float(lengths_array.mean()), float(lengths_array.std())]
    values += [capitals, capitals / max(1, letters), digits, digits / size, marks / size]
    values += [text.count(_LISTING), len(_SMALL_AFTER_STOP.findall(text))]
    values += [len(_CAPITAL_WITHIN.findall(text)), max(text.find("?"), text.find("？"))]
    values += [stripped[:1].isalpha(), stripped[:1].isupper(), last.isalpha()]
    values += [last in _GROUPS[1], last in _GROUPS[3], last in _GROUPS[9]]
    values += [sum(map(text.count, group)) for group in _GROUPS]
    values += [text.count(digit) for digit in "0123456789"]
    return values


def match(pools: Sequence[Sequence[str]], replies: Sequence[str]) -> list[str]:
    """Choose a text of each pool, so that all of them together have the forms of the replies.

    Every text is the best one given all others: pool after pool, a few times over.
    """
    if not replies:
        return [pool[0] for pool in pools]
    wanted = _Forms(replies)
    values = [wanted.of(pool) for pool in pools]
    chosen = np.zeros(len(pools), dtype=int)
    total = np.sum([of_pool[0] for of_pool in values], axis=0)
    for _ in range(_SWEEPS):
        for number, of_pool in enumerate(values):
            total_of_others = total - of_pool[chosen[number]]
            distances = (total_of_others + of_pool) / len(pools)
            chosen[number] = np.argmin(np.square(distances).sum(axis=1))
            total = total_of_others + of_pool[chosen[number]]
    return [pool[position] for pool, position in zip(pools, chosen, strict=True)]


class _Forms:
    """The forms of a model's replies, against which others are measured."""

    def __init__(self, replies: Sequence[str]) -> None:
        table = np.array([form_values(reply) for reply in replies], dtype=float)
        self._limits = [np.unique(np.quantile(column, _QUANTILES)) for column in table.T]
        wide = self._widen(table)
        self._mean = wide.mean(axis=0)
        spread = wide.std(axis=0)
        # A value that all replies have alike must be met too.
        self._spread = np.where(spread > 0.0, spread, 0.2)
        scaled = (wide - self._mean) / self._spread
        covariance = scaled.T @ scaled / len(scaled) + _RIDGE * np.eye(scaled.shape[1])
        self._whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T

    def of(self, texts: Sequence[str]) -> Values:
        """How far each text is from the mean reply, in independent values of one size."""
        table = np.array([form_values(text) for text in texts], dtype=float)
        scaled = (self._widen(table) - self._mean) / self._spread
        independent: Values = scaled @ self._whitening
        return independent

    def _widen(self, table: Values) -> Values:
        """Add to each value whether it is above limits."""
        columns = zip(table.T, self._limits, strict=True)
        above = [column[:, None] > limits for column, limits in columns]
        return np.hstack([table, *above])
