"""CPU time and memory of a comparison of two runs of 4,650 items with 5 samples (docs/measurements.md).

python tools/bench_compare.py
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from make_synthetic_split import write_split
from measure import measure

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.splits import load_split


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_split(folder / "split", 4650, 0)
        scenarios = load_split(str(folder / "split")).scenarios
        for run in ("a", "b"):
            rng = random.Random(run)
            keys = [(one.id, k) for one in scenarios for k in range(5)]
            lines = [{"id": name, "sample": k, "text": rng.choice(scenarios).reference} for name, k in keys]
            (folder / f"{run}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            spec = EvaluateSpec(
                model=f"scripted:{folder}/{run}.jsonl",
                split=str(folder / "split"),
                out=str(folder / run),
                samples=5,
                temperature=0.7,
                embedder="none",
                baselines=False,
            )
            evaluate(spec)
        command = [sys.executable, "-m", "h2htalk", "compare", *(str(folder / run) for run in ("a", "b"))]
        cost = measure([*command, "--out", str(folder / "difference")], folder / "log.txt", {})
        print(f"{cost.cpu:.1f} CPU s, {cost.rss:.0f} MiB")


if __name__ == "__main__":
    main()
