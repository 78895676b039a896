"""Commands on results for others: export them, and compute a bundle's scores again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

import h2htalk
from h2htalk.cli import options
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError

with options.lazy_imports():
    from h2htalk.data.releases import hub

AskedSplit = Annotated[str | None, Option(help=f"The split that was asked. {options.SPLIT}")]
Bundle = Annotated[Path, Argument(help="A bundle: a folder or a .zip.")]


def results_export(
    run: options.Run,
    to: Annotated[str, Option(help="eval-results, every-eval-ever, bundle or inspect.")],
    out: options.Out,
    dataset: Annotated[
        str | None, Option(help="eval-results: the data set, if the run names none.")
    ] = None,
    revision: Annotated[str | None, Option(help="eval-results: the data set's commit.")] = None,
    source_url: Annotated[str | None, Option(help="eval-results: a page about the run.")] = None,
    push: Annotated[
        str | None, Option(help="eval-results: open a pull request to this model.")
    ] = None,
    model: Annotated[
        str | None, Option(help="every-eval-ever: the model as DEVELOPER/NAME.")
    ] = None,
    organization: Annotated[
        str | None, Option(help="every-eval-ever: who ran the evaluation.")
    ] = None,
    relationship: Annotated[
        str, Option(help="first_party, third_party, collaborative or other.")
    ] = "third_party",
    prompts: options.RunPrompts = None,
) -> None:
    """Write the results of a scored run in a format of others; only --push sends anything."""
    if push is not None and to != "eval-results":
        raise ConfigError("--push is for --to eval-results")
    if to == "inspect":
        from h2htalk.integrations.inspect.export import export_log  # needs the harness itself

        say(*map(str, export_log(run, out, prompts)))
        return
    about = {"dataset": dataset, "revision": revision, "source_url": source_url}
    about |= {"model": model, "organization": organization, "relationship": relationship}
    written = h2htalk.export_results(run, to, out, prompts=prompts, **about)  # type: ignore[arg-type]
    say(*map(str, written))
    if to == "eval-results":
        say(written[0].read_text(encoding="utf-8").rstrip("\n"))
    if push is not None:
        name = written[0].relative_to(out).as_posix()
        say(
            f"pull request: {hub.open_pull_request(push, name, written[0], 'Add results of h2htalk')}"
        )


def results_verify(
    bundle: Bundle, split: AskedSplit = None, references: options.References = None
) -> None:
    """Compute the scores of a bundle again. Exit code 4: something differs; 3: what is listed is not verified."""
    verification = h2htalk.verify_results(bundle, split, references)
    say(f"split: {verification.split}", f"part: {verification.part}")
    if verification.edition:
        say(f"edition: {verification.edition}")
    say(f"matches: {', '.join(verification.matches) or 'nothing'}")
    say(*(f"claimed, which no bundle can show: {line}" for line in verification.claims))
    say(*(f"not verified: {line}" for line in verification.unchecked))
    say(*(f"differs: {line}" for line in verification.differs))
    if verification.differs:
        raise Exit(4)
    if verification.unchecked:
        raise Exit(3)
