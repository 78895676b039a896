"""`.eval_results/NAME.yaml`: the entries that the Hub shows on a model's page and on the benchmark's leaderboard.

One wrong entry hides the whole file, so each benchmark has a file of its own, and nothing in it is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from h2htalk.benchmark.load_run import Run
from h2htalk.benchmark.results_export.run_figures import answered_at, hub_name, language_figures, require_scored
from h2htalk.data.files import write_text
from h2htalk.data.subtasks import task_id
from h2htalk.errors import ConfigError


def write_eval_results(
    run: Run, out: Path, dataset: str | None = None, revision: str | None = None, source_url: str | None = None
) -> Path:
    """Write the entries of a run on a whole release into `out`, which stands for the model's repository.

    Raises:
        ConfigError: the run is incomplete, or of a selection, or its data set is not known.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    from huggingface_hub.utils import yaml_dump  # type: ignore[attr-defined]

    require_scored(run)
    if run.summary.signature.human:
        raise ConfigError(f"{run.data.folder.path}: people's replies have no model's page; use another --to")
    split = run.data.split
    if run.data.spec.limit is not None or "#" in split.source:
        raise ConfigError(f"{run.data.folder.path}: results of the benchmark are of all items of split test")
    repo, commit = dataset or (split.commit and hub_name(split)), revision or split.commit
    if not repo or not commit:
        raise ConfigError(
            "the run's split was not loaded from the Hub: name the same data set there with --dataset OWNER/NAME and "
            "--revision COMMIT"
        )
    date = answered_at(run).isoformat().replace("+00:00", "Z")
    entries = [
        EvalResultEntry(repo, task, value, commit, date=date, source_url=source_url, notes=notes)
        for task, value, notes in _values(run)
    ]
    path = out / ".eval_results" / f"{repo.replace('/', '--')}.yaml"
    write_text(path, yaml_dump(eval_result_entries_to_yaml(entries), sort_keys=False))
    return path


def _values(run: Run) -> Iterator[tuple[str, float, str]]:
    """Yield task, value and notes of each figure."""
    summary = run.summary
    made = f"h2htalk {summary.package_version}; protocol {summary.signature.fingerprint}{summary.answering.label}"
    for language, figures in language_figures(run.data.split.scenarios, run.item_scores).items():
        caution = ""
        if figures.measure == "lexical":
            caution = "mean of six lexical metrics, not S; "
        elif not summary.s_comparable:
            caution = f"S with embedder {summary.signature.protocol['embedder']}, not with BGE-M3; "
        if summary.judging is not None:  # the fingerprint is that of S and J
            caution += f"without the ratings of {', '.join(summary.judging.judges)}; "
        for name, cell in figures.cells.items():
            interval = "" if cell.low is None else f", 95 % interval {cell.low:.2f} to {cell.high:.2f}"
            yield task_id(name, language), round(cell.value or 0.0, 2), f"{caution}{cell.n:,} items{interval}; {made}"
