"""Export the results of a run."""

from __future__ import annotations

import os
from pathlib import Path

from h2htalk.benchmark.load_run import load_run
from h2htalk.benchmark.results_export.bundle import write_bundle
from h2htalk.benchmark.results_export.eval_results import write_eval_results
from h2htalk.benchmark.results_export.every_eval_ever import write_every_eval_ever
from h2htalk.data.arguments import as_path
from h2htalk.data.links import link_copies
from h2htalk.errors import ConfigError, quoted, suggest

FORMATS = ("eval-results", "every-eval-ever", "bundle")


def export_results(
    run: str | os.PathLike[str],
    to: str,
    out: str | os.PathLike[str],
    *,
    dataset: str | None = None,
    revision: str | None = None,
    source_url: str | None = None,
    model: str | None = None,
    organization: str | None = None,
    relationship: str = "third_party",
) -> list[Path]:
    """Write the results of a scored run in a format of others. Nothing is sent.

    Args:
        run: its folder.
        to: `eval-results` (entries for the model's page on the Hub), `every-eval-ever` (its data store), or `bundle`
            (for `verify_results`).
        out: the folder to write into; of a bundle a new folder, or a new file ending with .zip.
        dataset, revision: of eval-results: the data set on the Hub and its commit; default: those of the run.
        source_url: of eval-results: a page about the run.
        model: of every-eval-ever: `DEVELOPER/MODEL`.
        organization, relationship: of every-eval-ever: who ran the evaluation, and what they are to the model's
            developer; one of `every_eval_ever.RELATIONSHIPS`.

    Examples:
        >>> import h2htalk
        >>> [path.name for path in h2htalk.export_results("runs/constant", "bundle", "bundle")]
        ['bundle.json', 'responses.jsonl', 'scores.jsonl']

    Returns:
        The files.

    Raises:
        ConfigError: an unknown format, a run that it does not take, or a name that it needs.
        DataError: no scored run, or a file that cannot be written.
    """
    folder = as_path(out, "out")
    if to not in FORMATS:
        raise ConfigError(f"--to {quoted(to)}: {suggest(to, FORMATS)}choose from {', '.join(FORMATS)}")
    loaded = load_run(run)
    link_copies([loaded.data.folder.path], folder)
    if to == "bundle":
        return write_bundle(loaded, folder)
    if to == "eval-results":
        return [write_eval_results(loaded, folder, dataset, revision, source_url)]
    return write_every_eval_ever(loaded, folder, model, organization, relationship)
