"""The formulas of `standing` and `companions` once more, read off their docstrings vote by vote: slow and plain."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from h2htalk.rounds.votes import Vote


class Plain:
    """Chances of labels, by an item's votes and between tied ones."""

    def __init__(self, votes: Sequence[Vote], gold: Mapping[str, str]) -> None:
        self.on: dict[str, dict[str, str]] = {}
        for vote in votes:
            self.on.setdefault(vote.item, {})[vote.voter] = vote.label
        self.labels = sorted({vote.label for vote in votes})
        self.voters = sorted({vote.voter for vote in votes})
        self.gold = gold
        self.beyond = {voter: self._beyond(voter) for voter in self.voters}
        rows = [(item, voter) for item, said in self.on.items() for voter in said]
        self.met = {row: self._met(*row, set()) for row in rows}
        self.met_apart = {row: self._met(*row, self._near(*row)) for row in rows}

    def _beyond(self, voter: str) -> dict[str, float]:
        """By how many standard errors others say the same as a voter more often than the rest do."""
        times: Counter[str] = Counter()
        same: Counter[str] = Counter()
        for said in self.on.values():
            if voter in said:
                times.update(other for other in said if other != voter)
                same.update(o for o, label in said.items() if o != voter and label == said[voter])
        found = {}
        for other, count in times.items():
            rest = times.total() - count
            usual = (same.total() - same[other] + 1) / (rest + 2)
            found[other] = math.inf
            if rest:
                found[other] = (same[other] - count * usual) / math.sqrt(count * usual * (1 - usual))
        return found

    def _near(self, item: str, voter: str) -> set[str]:
        most = min(max(len(self.on[item]) // 2 - 1, 1), 3)
        by = self.beyond[voter]
        return {other for other in by if by[other] > 2 and sum(by[o] > by[other] for o in by) < most}

    def _met(self, item: str, voter: str, without: set[str]) -> str | None:
        if item in self.gold:
            return self.gold[item]
        others = (label for other, label in self.on[item].items() if other != voter and other not in without)
        return only_most(Counter(others))

    def _count(
        self, met: Mapping[tuple[str, str], str | None], but: str, voter: str
    ) -> Counter[tuple[str, str]]:
        """(met, said) of a voter on all items but one."""
        return Counter(
            (str(met[item, voter]), said[voter])
            for item, said in self.on.items()
            if item != but and voter in said and met[item, voter] in self.labels
        )

    def by_votes(self, item: str) -> tuple[dict[str, float], dict[str, float]]:
        """Log-likelihood of an item's votes and its variance, by label."""
        sums, variance = dict.fromkeys(self.labels, 0.0), dict.fromkeys(self.labels, 0.0)
        for voter, label in self.on[item].items():
            counted = self._count(self.met, item, voter)
            for k in self.labels:
                part = counted[k, label] + (4 if label == k else 2 / max(len(self.labels) - 1, 1))
                whole = sum(counted[k, said] for said in self.labels) + 6
                sums[k] += math.log(part / whole)
                variance[k] += 1 / part - 1 / whole
        return sums, variance

    def by_difference(self, item: str) -> tuple[dict[str, float], dict[str, float], dict[str, int]]:
        """Evidence of how an item's voters differ from the others, its variance, and votes that all are known by."""
        sums, variance = dict.fromkeys(self.labels, 0.0), dict.fromkeys(self.labels, 0.0)
        known = dict.fromkeys(self.labels, 10**9)
        counted = {voter: self._count(self.met_apart, item, voter) for voter in self.voters}
        for voter, label in self.on[item].items():
            for k in self.labels:
                under = {v: sum(counted[v][k, said] for said in self.labels) for v in self.voters}
                pool = sum(under.values()) - under[voter] + len(self.labels)
                share = (sum(counted[v][k, label] for v in self.voters if v != voter) + 1) / pool
                part, whole = counted[voter][k, label] + 6 * share, under[voter] + 6
                sums[k] += math.log(part / whole) - math.log(share)
                variance[k] += (1 / part - 1 / whole) * ((pool + under[voter]) / pool) ** 2
                known[k] = min(known[k], under[voter])
        return sums, variance, known

    def prior(self, item: str) -> dict[str, float]:
        most = Counter(
            self.gold[other] if other in self.gold else only_most(Counter(said.values()))
            for other, said in self.on.items()
            if other != item
        )
        total = sum(most[label] for label in self.labels)
        return {label: math.log((most[label] + 1) / (total + len(self.labels))) for label in self.labels}

    def chances(
        self, item: str, among: Sequence[str], sums: Mapping[str, float], variance: Mapping[str, float]
    ) -> dict[str, float]:
        prior, weights = self.prior(item), {}
        for label in among:
            weights[label] = 1 / sum(
                math.exp(
                    (sums[other] + prior[other] - sums[label] - prior[label])
                    / math.sqrt(1 + math.pi / 8 * (variance[label] + variance[other]) * (other != label))
                )
                for other in among
            )
        return {label: weight / sum(weights.values()) for label, weight in weights.items()}

    def settle(self, item: str, tied: Sequence[str], margin: float) -> tuple[str, float] | None:
        sums, variance, known = self.by_difference(item)
        by_label = self.chances(item, tied, sums, variance)
        best, *rest = sorted(tied, key=lambda label: -by_label[label])
        clear = by_label[best] >= 0.87 and by_label[best] - by_label[rest[0]] >= margin
        sure = all(
            min(known[best], known[other]) >= 10
            and sums[best] - sums[other] > 2.5 * math.sqrt(variance[best] + variance[other])
            for other in rest
        )
        return (best, by_label[best]) if clear and sure else None


def only_most(counts: Counter[str]) -> str | None:
    leading = [label for label, count in counts.items() if count == max(counts.values())]
    return leading[0] if len(leading) == 1 else None
