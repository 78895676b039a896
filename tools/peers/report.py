"""The measurements as Markdown: medians, ratios, and the limits they are held against."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Cost

OURS, LM_EVAL, INSPECT, FLOOR = "h2htalk evaluate", "lm-eval", "Inspect", "aiohttp alone"
FEW = 10  # items of the runs that give a fixed cost
CONCURRENCY = 64
PARTS = ("render", "generate", "read", "lexical")
PACKAGES = {
    "h2htalk's": ("h2htalk", "aiohttp", "rapidfuzz", "jieba", "sacrebleu", "pyarrow", "numpy"),
    "the peers'": ("lm_eval", "inspect_ai", "openai", "httpx", "aiohttp", "datasets"),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """Every cost of one benchmark.

    `fixed`: runs of 10 items. `busy`: runs of `count` items at 0 ms. `parts`: CPU seconds of the library's parts.
    `slow`: runs at `latency` seconds. `help_cpu`: median CPU seconds of `h2htalk --help`.
    """

    count: int
    latency: float
    fixed: Mapping[str, Sequence[Cost]]
    busy: Mapping[str, Sequence[Cost]]
    parts: Sequence[Mapping[str, float]]
    slow: Mapping[str, Sequence[Cost]]
    help_cpu: float

    def median(self, name: str, field: str, slow: bool = False) -> float:
        costs = (self.slow if slow else self.busy)[name]
        return statistics.median(float(getattr(cost, field)) for cost in costs)

    def fixed_cpu(self, name: str) -> float:
        """CPU seconds that a run costs before its items count."""
        return statistics.median(cost.cpu for cost in self.fixed[name])

    def per_sample(self, name: str) -> float:
        """CPU milliseconds a sample, the fixed cost taken off."""
        return 1000 * (self.median(name, "cpu") - self.fixed_cpu(name)) / (self.count - FEW)

    def part(self, name: str) -> float:
        """Median CPU milliseconds a sample of one part."""
        return 1000 * statistics.median(parts[name] for parts in self.parts) / self.count

    @property
    def parts_per_sample(self) -> float:
        """Median over runs of the four parts together, CPU milliseconds a sample."""
        return (
            1000 * statistics.median(sum(run[p] for p in PARTS) for run in self.parts) / self.count
        )

    @property
    def ideal_span(self) -> float:
        """Seconds that the latency alone takes."""
        return self.count / CONCURRENCY * self.latency


def versions(python: Path, peers: Path) -> str:
    """The versions that were measured, a line an environment."""
    code = "import sys; from importlib.metadata import version as v; "
    code += "print(', '.join(f'{n} {v(n)}' for n in sys.argv[1:]))"
    lines = []
    for (owner, names), interpreter in zip(PACKAGES.items(), (python, peers), strict=True):
        done = subprocess.run(
            [interpreter, "-c", code, *names], check=True, capture_output=True, text=True
        )
        lines.append(f"{owner} environment: {done.stdout.strip()}")
    return "\n".join(f"* {line}" for line in lines)


def markdown(bench: Bench, version_lines: str, where: str) -> str:
    """Tables and verdicts, ready for docs/measurements.md."""
    parts = ", ".join(f"{name} {bench.part(name):.3f}" for name in PARTS)
    return "\n\n".join(
        [
            f"Measured {where}.\n\n{version_lines}",
            f"{bench.count:,} scenarios, {CONCURRENCY} in flight, 0 ms; medians:\n\n{_busy_table(bench)}",
            f"Parts of h2htalk's hot path, CPU ms a sample: {parts}; together {bench.parts_per_sample:.2f} (generate"
            " includes the store).",
            f"{1000 * bench.latency:g} ms, ideal span {bench.ideal_span:.2f} s; medians:\n\n{_slow_table(bench)}",
            _verdicts(bench),
        ]
    )


def _busy_table(bench: Bench) -> str:
    lines = [
        "| runner | CPU s | of it fixed | CPU ms a sample | wall s | request span s | peak RSS MiB | others |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in bench.busy:
        fixed = f"{bench.fixed_cpu(name):.2f}" if name in bench.fixed else "-"
        sample = f"{bench.per_sample(name):.2f}" if name in bench.fixed else "-"
        values = [f"{bench.median(name, field):.2f}" for field in ("wall", "span")]
        memory = bench.median(name, "rss")
        others = bench.median(name, "others")
        cells = [
            f"{bench.median(name, 'cpu'):.2f}",
            fixed,
            sample,
            *values,
            f"{memory:.0f}",
            f"{others:.1f}",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _slow_table(bench: Bench) -> str:
    lines = [
        "| runner | request span s | of the ideal | CPU s | others |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in bench.slow:
        span = bench.median(name, "span", slow=True)
        cpu, others = (bench.median(name, field, slow=True) for field in ("cpu", "others"))
        lines.append(
            f"| {name} | {span:.2f} | {span / bench.ideal_span:.2f}x | {cpu:.2f} | {others:.1f} |"
        )
    return "\n".join(lines)


def _verdicts(bench: Bench) -> str:
    ours = bench.per_sample(OURS)
    span = bench.median(OURS, "span", slow=True) / bench.ideal_span
    checks = [
        ("CPU a sample, whole command, of lm-eval", ours / bench.per_sample(LM_EVAL), 1.0, "x"),
        ("CPU a sample, whole command, of Inspect", ours / bench.per_sample(INSPECT), 1 / 8, "x"),
        ("generate + store + lexical", bench.parts_per_sample, 0.4, " CPU ms a sample"),
        ("request span, of the ideal", span, 1.2, "x"),
        ("`h2htalk --help`", bench.help_cpu, 0.25, " CPU s"),
        ("peak memory of the command", bench.median(OURS, "rss"), 200, " MiB"),
    ]
    lines = ["| | measured | at most | |", "| --- | --- | --- | --- |"]
    for what, value, limit, unit in checks:
        verdict = "met" if value <= limit else "NOT MET"
        lines.append(f"| {what} | {value:.3g}{unit} | {limit:.3g}{unit} | {verdict} |")
    return "\n".join(lines)
