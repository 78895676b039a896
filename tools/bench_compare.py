"""CPU time and memory of a comparison of two runs of 4,650 items with 5 samples (docs/measurements.md).

python tools/bench_compare.py
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from make_synthetic_split import write_split

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
            lines = [
                {"id": one.id, "sample": k, "text": rng.choice(scenarios).reference}
                for one in scenarios
                for k in range(5)
            ]
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
        subprocess.run(
            [sys.executable, "-m", "h2htalk", "compare", "a", "b", "--out", "difference"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{used.ru_utime + used.ru_stime:.1f} CPU s, {used.ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
