"""A suite: many models, splits, SAP settings and seeds in one TOML file; every combination is a run with a folder.

    splits = ["mini"]
    sap = ["full", "none"]
    [[models]]
    model = "vllm:OWNER/NAME"

`Suite` lists the keys. Paths are relative to the current folder, as those of `h2htalk evaluate`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, with_config

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.engines import parse_model
from h2htalk.data.files import read_json_object, read_toml
from h2htalk.data.records import STRICT, Text, read_record
from h2htalk.data.splits import load_split
from h2htalk.errors import (
    ConfigError,
    H2HTalkError,
    IncompleteError,
    counted,
    listed,
    quoted,
    suggest,
)
from h2htalk.scale.attempts import Shard, read_attempts, winner_of
from h2htalk.scale.merge import merge
from h2htalk.scale.shards import evaluate_shard
from h2htalk.scale.storage_folder import StorageFolder
from h2htalk.text.tables import Table

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}")
_SLUG = re.compile(r"[^A-Za-z0-9.]+")
Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class SuiteModel:
    """A model of a suite, `[[models]]` in the file."""

    name: str = ""  # in the names of its runs; from the model when left out
    model: str = ""  # `ENGINE:NAME`
    unknown: str = ""  # why the model cannot be told, instead of one: it is listed, and not run
    size: Annotated[float, Field(gt=0)] | None = None  # billions of parameters
    gpus: Annotated[int, Field(ge=0, le=64)] | None = (
        None  # of one copy; 1 of `vllm:` and `hf:` when left out, else 0
    )
    hours: Annotated[float, Field(ge=0)] | None = None  # of one run, on these GPUs
    cost: Annotated[float, Field(ge=0)] | None = None  # of one run, in US dollars
    shards: Annotated[int, Field(ge=1, le=1000)] | None = (
        None  # machines that share one of its runs
    )
    note: str = ""  # of your own
    # As `--engine-option` of `h2htalk evaluate`.
    engine_options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    evaluate: Mapping[str, Any] = field(
        default_factory=dict
    )  # settings of `h2htalk evaluate` for it alone

    @property
    def label(self) -> str:
        return self.name or self.model

    @property
    def hosted(self) -> bool:
        return parse_model(self.model)[0].hosted


@dataclass(frozen=True, slots=True)
class SlurmSettings:
    """How a suite runs on Slurm: options of `sbatch`, left to the site where they are empty, and the tasks."""

    partition: str = ""  # `--partition`
    account: str = ""  # `--account`
    qos: str = ""  # `--qos`
    time: str = ""  # `--time` of a task
    memory: str = ""  # `--mem` of a task
    cpus: Annotated[int, Field(ge=1)] = 4  # of a task
    gpus: Text = "--gres=gpu:{gpus}"  # how to ask for N GPUs, with {gpus} for the number
    options: tuple[str, ...] = ()  # further options, for all jobs
    merge: tuple[str, ...] = ()  # options for the job that merges
    setup: str = ""  # lines of shell before each task
    command: Text = "h2htalk"  # how the program is called there
    array_limit: Annotated[int, Field(ge=1)] | None = (
        None  # highest index of an array; asked of the site if left out
    )
    tasks_at_once: Annotated[int, Field(ge=1)] | None = None  # of each array; all when left out


@with_config(STRICT)
@dataclass(frozen=True, slots=True)
class Suite:
    """The content of the file."""

    models: Annotated[tuple[SuiteModel, ...], Field(min_length=1)]  # each is run on every split
    out: Text = "runs"  # the folder of the runs
    storage: str = ""  # where shards are written, such as s3://bucket/runs; `out` when left out
    splits: Annotated[tuple[Text, ...], Field(min_length=1)] = ("mini",)  # as `--split`
    sap: Annotated[tuple[Text, ...], Field(min_length=1)] = ("full",)  # as `--sap`
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] = (
        0,
    )  # as `--seed`
    max_cost: Annotated[float, Field(ge=0)] | None = (
        None  # US dollars of all runs; each run and shard gets its share
    )
    shards: Annotated[int, Field(ge=1, le=1000)] = (
        1  # machines that share one run, where a model does not say
    )
    evaluate: Mapping[str, Any] = field(
        default_factory=dict
    )  # other settings of `h2htalk evaluate`
    slurm: SlurmSettings = field(default_factory=SlurmSettings)  # how it runs on a cluster


@dataclass(frozen=True, slots=True)
class MissingShards:
    """The numbers of a run's shards that are not finished, and of those that are finished with failed calls."""

    unfinished: list[int]
    failed: list[int]


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A run of a suite. `spec.out` is its folder; its shards' attempts lie in `storage`."""

    name: str
    model: SuiteModel
    spec: EvaluateSpec
    storage: StorageFolder
    shards: int

    @property
    def paid(self) -> bool:
        return self.model.hosted

    @property
    def gpus(self) -> int:
        """GPUs of one copy of the model here; none of a hosted one."""
        if self.paid:
            return 0
        if self.model.gpus is None:
            return int(self.spec.engine in ("vllm", "hf"))
        return self.model.gpus

    def missing(self) -> MissingShards:
        """The shards to run, read from their marks; none of a run that was begun as a whole."""
        missing = MissingShards(unfinished=[], failed=[])
        numbers = range(0) if self.begun_whole else range(1, self.shards + 1)
        for number in numbers:
            winner = winner_of(read_attempts(self.storage / Shard(number, self.shards).folder))
            if winner is None:
                missing.unfinished.append(number)
            elif winner.failed:
                missing.failed.append(number)
        return missing

    @property
    def begun_whole(self) -> bool:
        """Whether it was begun in its folder, without shards."""
        manifest = self.spec.out_path / "run.json"
        return manifest.exists() and "shards" not in read_json_object(manifest)


def read_suite(path: Path) -> Suite:
    """Read a suite. Raises ConfigError, with a line for each key that is unknown or wrong."""
    unknown = "docs/how-to/scale.md lists them"
    suite = read_record(Suite, read_toml(path), str(path), error=ConfigError, unknown=unknown)
    for model in suite.models:
        if bool(model.model) == bool(model.unknown):
            raise ConfigError(
                f"{path}: {quoted(model.label)}: a model has a `model` or says why it is `unknown`, not both"
            )
        if model.unknown:
            continue
        try:
            engine, name = parse_model(model.model)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error
        is_folder = name.startswith((".", "/", "~"))
        if engine.name in ("vllm", "hf") and not is_folder and not _HUB_ID.fullmatch(name):
            raise ConfigError(
                f"{path}: {quoted(model.model)}: neither a folder (./NAME) nor a name on the Hub (OWNER/NAME)"
            )
    settings = [suite.evaluate, *(model.evaluate for model in suite.models)]
    for name in ("model", "split", "out", "sap", "seed", "max_cost"):
        if any(name in names for names in settings):
            raise ConfigError(
                f"{path}: evaluate.{name}: belongs to the suite or a model, not to `evaluate`"
            )
    return suite


def runs_of(suite: Suite, chosen: Sequence[str] = ()) -> list[SuiteRun]:
    """The runs of a suite, or those of `chosen` names, in the order of the file. Raises ConfigError."""
    models = [model for model in suite.models if model.model]
    combinations = [*product(models, suite.splits, suite.sap, suite.seeds)]
    paid = sum(model.hosted for model, *_ in combinations)
    runs: list[SuiteRun] = []
    names: list[str] = []
    for model, split, sap, seed in combinations:
        # The model, and what of the others differs between the runs.
        words = [model.label.partition(":")[2] or model.label]
        if len(suite.splits) > 1:
            words.append(split)
        if len(suite.sap) > 1:
            words.append(f"sap {sap}")
        if len(suite.seeds) > 1:
            words.append(f"seed {seed}")
        name = "-".join(_SLUG.sub("-", word).strip("-.") for word in words)
        # The folder of all runs, that of its jobs, and those of attempts.
        if name in ("", "launch") or name.endswith(".shards"):
            raise ConfigError(
                f"model {quoted(model.label)}: a run cannot be called {quoted(name)}: give it a `name`"
            )
        if name in names:
            raise ConfigError(
                f"two runs of the suite are called {name}: give the models a `name` each"
            )
        names.append(name)
        if chosen and name not in chosen:
            continue
        settings: dict[str, Any] = {
            **suite.evaluate,
            **model.evaluate,
            "model": model.model,
            "split": split,
            "sap": sap,
            "out": f"{suite.out.rstrip('/')}/{name}",
            "seed": seed,
        }
        if model.engine_options:
            settings["engine_options"] = dict(model.engine_options)
        if suite.max_cost is not None and model.hosted:
            settings["max_cost"] = suite.max_cost / paid
        spec = EvaluateSpec.from_dict(settings, f"run {name}")
        storage = StorageFolder(suite.storage or suite.out) / f"{name}.shards"
        runs.append(SuiteRun(name, model, spec, storage, model.shards or suite.shards))
    for name in chosen:
        if name not in names:
            raise ConfigError(
                f"--run {quoted(name)}: {suggest(name, names)}the suite has {listed(names)}"
            )
    return runs


def run_suite(path: Path, chosen: Sequence[str], shard: str | None, dry_run: bool, say: Say) -> int:
    """Carry out the runs of a suite here, one after the other, or a shard of one; returns the exit code.

    A run that fails does not end the others. The same call resumes.
    """
    suite = read_suite(path)
    runs = runs_of(suite, chosen)
    if dry_run:
        say(plan_text(suite, runs))
        return 0
    if shard is not None:
        part = Shard.parse(shard)
        if len(runs) > 1 or part.total != runs[0].shards:
            numbers = [f"{run.name} {run.shards}" for run in runs[:5]]
            raise ConfigError(
                "--shard: name one run with --run, and as many shards as the file gives it "
                f"({', '.join(numbers)})"
            )
        say(evaluate_shard(shard_spec(runs[0]), part))
        return 0
    return max((_carry_out(run, _evaluated, say) for run in runs), default=0)


def _evaluated(run: SuiteRun) -> bool:
    """Carry out a run here; whether it is incomplete. Raises ConfigError where shards of it have begun."""
    if run.storage.names() and not (run.spec.out_path / "run.json").exists():
        raise ConfigError(
            f"{run.storage.address}: shards of it have begun: `h2htalk launch`, or remove them"
        )
    return evaluate(run.spec).incomplete


def shard_spec(run: SuiteRun) -> EvaluateSpec:
    """The specification of an attempt at a shard of a run. Raises ConfigError where the run has begun as a whole."""
    if run.begun_whole:
        raise ConfigError(
            f"{run.spec.out}: was begun as a whole: go on with `evaluate --suite`, or remove it"
        )
    return EvaluateSpec.from_dict({**run.spec.to_dict(), "out": run.storage.address}, run.name)


def merge_suite(path: Path, say: Say) -> int:
    """Merge the runs of a suite whose shards are finished; returns the exit code, 3 where some are not."""
    runs = runs_of(read_suite(path))
    return max((_carry_out(run, _merged, say) for run in runs), default=0)


def _merged(run: SuiteRun) -> bool:
    """Merge a run, if it has shards; whether it is incomplete."""
    if run.begun_whole:
        return load_run(run.spec.out_path).summary.incomplete
    if not run.storage.names():
        raise IncompleteError(f"0 of {run.shards} shards are finished")
    prompts = None if run.spec.prompts is None else Path(run.spec.prompts)
    return merge([run.storage.address], run.spec.out_path, prompts).incomplete


def _carry_out(run: SuiteRun, carry_out: Callable[[SuiteRun], bool], say: Say) -> int:
    try:
        incomplete = carry_out(run)
    except H2HTalkError as error:
        say(f"{run.name}: {error}")
        return error.exit_code
    say(f"{run.name}: {'incomplete' if incomplete else 'done'}, {run.spec.out}")
    return IncompleteError.exit_code if incomplete else 0


def plan_text(suite: Suite, runs: Sequence[SuiteRun]) -> str:
    """Describe the runs, GPUs, hours and dollars of a suite, from what the file says of them; no model is asked."""
    for split in suite.splits:
        load_split(split)
    for sap in suite.sap:
        Sap.parse(sap)
    rows = []
    gpu_hours = []
    costs = []
    for run in runs:
        model = run.model
        hours = None if model.hours is None else model.hours * run.gpus
        rows.append(
            (run.name, run.spec.model, run.shards, run.gpus, model.hours, hours, model.cost)
        )
        if run.gpus:
            gpu_hours.append(hours)
        if run.paid:
            costs.append(model.cost)
    total = sum(filter(None, gpu_hours))
    notes = [f"{counted(len(runs), 'run')}: {total:,.1f} GPU hours{_without(gpu_hours, 'hours')}"]
    if costs:
        limit = "" if suite.max_cost is None else f", at most {suite.max_cost:,.2f} (max_cost)"
        notes.append(
            f"paid calls: about {sum(filter(None, costs)):,.2f} US dollars{limit}{_without(costs, 'cost')}"
        )
    notes += [f"not run: {model.label}: {model.unknown}" for model in suite.models if model.unknown]
    header = ("run", "model", "shards", "GPUs", "hours", "GPU hours", "US dollars")
    return Table("", header, rows, notes).to_terminal()


def _without(numbers: list[float | None], what: str) -> str:
    unknown = numbers.count(None)
    if not unknown:
        return ""
    return f", without {counted(unknown, 'run')} whose {what} the file does not tell"
