"""Score the responses of a run, once generated or imported; report it; erase items from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from h2htalk.benchmark.baselines import (
    NEEDS_REFERENCES,
    find_baseline,
    read_baselines,
    write_baselines,
)
from h2htalk.benchmark.judge.judgements import rate_scores, read_judging, require_judging
from h2htalk.benchmark.metrics import composite
from h2htalk.benchmark.metrics.composite import (
    METRICS,
    ItemScore,
    Metrics,
    Scores,
    score_answers,
    write_scores,
)
from h2htalk.benchmark.metrics.lexical import ROUGE_KINDS
from h2htalk.benchmark.replies.prompt_sizes import PromptSize, describe_prompts, size_warnings
from h2htalk.benchmark.replies.reply_endings import count_endings, earlier_filters, ending_warnings
from h2htalk.benchmark.report.html_page import write_page
from h2htalk.benchmark.report.page_items import ItemView
from h2htalk.benchmark.report.table_files import TABLES, write_facts, write_tables
from h2htalk.benchmark.run import UNKNOWN, RunInputs, RunWriter, load_run, read_run_data
from h2htalk.benchmark.run_facts import answer_warnings, collect_facts, read_sessions
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.statistics.averages import INTERVAL_RULE
from h2htalk.benchmark.summarize import (
    Scored,
    count_outcomes,
    null_shares,
    summarize,
    summarize_ratings,
)
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.store.call_store import read_costs
from h2htalk.chat.store.reply_marks import mark_warnings
from h2htalk.data.erasure.folder_kinds import ERASED, ErasableFolder, Record
from h2htalk.data.files import (
    WAIT,
    read_json_object,
    read_jsonl,
    remove_file,
    write_jsonl,
    writer_lock,
)
from h2htalk.data.imports.response_files import read_foreign_responses
from h2htalk.data.model_names import without_path
from h2htalk.data.responses import Answers, FailedResponse, FilterRule, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import FILTERED_KEY, HUMAN, LEAKS_UNCHECKED, VERSION_KEYS, Signature
from h2htalk.data.splits import Split, fingerprint_of, load_split, with_references
from h2htalk.errors import ConfigError, DataError, H2HTalkError, MissingExtraError
from h2htalk.progress import counted_items
from h2htalk.text.contracts.contract import CONTRACTS_VERSION
from h2htalk.text.embeddings.cache import CachedEmbedder
from h2htalk.text.embeddings.embedders import open_embedder, packages_of, require_embedder
from h2htalk.text.tokens import release_tokenizers, tokenizer_signature
from h2htalk.version import __version__, installed_versions

REFERENCES_LENGTH = 16  # hex digits of the hash of private references in a signature
SCORING_PACKAGES = ("numpy", "jieba", "sacrebleu", "rapidfuzz")
REVISION_LENGTH = 23  # "sha256:" and 16 hex digits
Replies = Iterable[Response | FailedResponse]
_LEAKS_WARNING = (
    "not checked: whether answers repeat the prompt, a rule of the contract; the templates of this run are not those "
    "of this version, so they were not rendered; `h2htalk score RUN --prompts RUN/inputs/prompts` checks it"
)


def open_metrics(
    embedder: str, rouge: str, contracts: str = "package", filtered: FilterRule = "refusal"
) -> Metrics:
    """Open the metrics by the names of embedder, ROUGE kind and contracts; `filtered`: what a filtered reply counts
    as."""
    if rouge not in ROUGE_KINDS:
        raise ConfigError(f"--rouge {rouge!r}: choose from {', '.join(ROUGE_KINDS)}")
    opened = None if embedder == "none" else CachedEmbedder(open_embedder(embedder))
    return Metrics(opened, rouge, contracts != "none", composite.installed_metrics(), filtered)


def metric_keys(metrics: Metrics, split: Split) -> dict[str, str]:
    """Return the protocol keys that depend on scoring alone; `references` where an item has more or fewer than one."""
    embedder = "none"
    if metrics.embedder is not None:
        embedder = f"{metrics.embedder.name}@{metrics.embedder.revision[:REVISION_LENGTH]}"
        languages = sorted({s.language for s in split.scenarios})
        if not all(metrics.asks_s(language) for language in languages):
            embedder += f"({','.join(filter(metrics.asks_s, languages)) or 'no language here'})"
    names = [
        f"{metric.name}-{metric.version}" for metric in (*METRICS.values(), *metrics.installed)
    ]
    keys = {
        "tokens": tokenizer_signature(),
        "metrics": ",".join(names),
        "contracts": CONTRACTS_VERSION if metrics.contracts else "none",
        "rouge": metrics.rouge,
        "intervals": INTERVAL_RULE,
        "embedder": embedder,
        FILTERED_KEY: metrics.filtered,
        "judge": "none",
    }
    references = _number_of_references(split)
    if references != "1":
        keys["references"] = references
    return keys


def _number_of_references(split: Split) -> str:
    """How many references an item has: a number, a range, or `private` where one has none here."""
    numbers = [len(scenario.references) for scenario in split.scenarios]
    least = min(numbers)
    most = max(numbers)
    if not least:
        return "private"
    return str(most) if least == most else f"{least}-{most}"


def score(
    path: Path,
    embedder: str | None = None,
    rouge: str | None = None,
    references: Path | None = None,
    filtered: FilterRule | None = None,
    prompts: Path | None = None,
) -> Summary:
    """Score the stored answers of a run again, without the model; `embedder`, `rouge`, `filtered`: None uses those of
    the run.

    `references`: the file of the split's private references; the run keeps its hash, not the texts. `prompts`: the
    templates to render for the contract's leak rule, as of `load_run`; it is not checked where they are not known.
    """
    if embedder is not None:
        require_embedder(embedder)
    data = read_run_data(path, prompts=prompts)
    spec = data.spec
    split = data.split
    erased = ""
    if references is not None:
        with suppress(
            H2HTalkError
        ):  # erasing items from the split leaves another file, whose hash the split names
            erased = load_split(spec.split).references_sha256 if data.folder.erased() else ""
        split = with_references(split, references, erased)
    metrics = open_metrics(
        embedder or spec.embedder, rouge or spec.rouge, spec.contracts, filtered or spec.filtered
    )
    with writer_lock(data.folder.calls_file, WAIT):
        return score_run_data(data, metrics, split)


def stored_summary(folder: RunFolder, baselines: bool, requested: Signature) -> Summary | None:
    """Return the summary of a complete run that was scored after its last answer by the versions of the signature that
    is `requested` for, None where it must be scored."""
    try:
        run = load_run(folder.path)
        scored_last = folder.summary.stat().st_mtime_ns >= folder.calls_file.stat().st_mtime_ns
    except (
        DataError,
        OSError,
    ):  # scoring writes again what is damaged or missing, or says what cannot be read
        return None
    signed = folder.signature()
    versions = {key: requested.protocol[key] for key in VERSION_KEYS & requested.protocol.keys()}
    expected = replace(signed, protocol={**signed.protocol, **versions})
    summary = run.summary
    written = [folder.page]
    for name in (*TABLES, "run.csv"):
        written.append(folder.tables / name)
    is_current = scored_last and not summary.incomplete and summary.package_version == __version__
    has_same_signature = _without_references(summary.signature) == _without_references(expected)
    is_complete = (
        bool(summary.baselines) == baselines
        and summary.costs == read_costs(folder.path)
        and all(path.is_file() for path in written)
    )
    return summary if is_current and has_same_signature and is_complete else None


def _without_references(signature: Signature) -> Signature:
    """The signature without what private references and judges change: a run that has them stays scored."""
    keys = ("references", "references_sha256", "judge")
    return replace(
        signature, protocol={k: v for k, v in signature.protocol.items() if k not in keys}
    )


def score_run_data(
    data: RunInputs, metrics: Metrics, split: Split | None = None, note: str = ""
) -> Summary:
    """Score the answers of a run, and write scores, summary, tables and page.

    `split` is the run's split with its private references, which are used and not written; `note` is one more warning.
    """
    folder = data.folder
    split = split or data.split
    samples = data.spec.samples
    leaks_unchecked = data.unrendered is not None and metrics.contracts
    signature = _signature(data, metrics, split, leaks_unchecked)
    answers = folder.answers([scenario.id for scenario in split.scenarios], samples)
    scores: Scores = score_answers(split, answers, samples, metrics, data.prompt_of)
    baselines = _score_baselines(folder, split, metrics, scores)
    release_tokenizers()  # their memory serves what comes now: pyarrow, the intervals, the page
    counts = count_outcomes(split.scenarios, answers, scores, len(folder.erased()))
    judging = read_judging(folder)
    costs = read_costs(folder.path)
    sizes = _prompt_sizes(data, split, answers)
    versions = installed_versions(*SCORING_PACKAGES, *packages_of(signature.protocol["embedder"]))
    prompts = describe_prompts(sizes)
    run_facts = collect_facts(read_sessions(folder), answers, costs, versions, prompts)
    endings = count_endings(answers.values())
    warnings = [
        *ending_warnings(endings, metrics.filtered, counts.left_out),
        *earlier_filters(answers.values(), endings),
        *answer_warnings(answers, run_facts),
    ]
    if note:
        warnings.append(note)
    if leaks_unchecked:
        warnings.append(_LEAKS_WARNING)
    warnings += size_warnings(sizes)
    warnings += _marks(split, answers, signature)
    folder.write_facts("answering", asdict(run_facts))
    figures = None
    if judging is not None:
        scores, figures, signature = rate_scores(data, judging, answers, scores, signature)
    scored = Scored(scores, null_shares(split.scenarios, answers, scores))
    summary = summarize(
        model=_label(signature) + run_facts.label,
        split=split,
        signature=signature,
        metrics=metrics,
        scored=scored,
        baselines=baselines,
        counts=counts,
        judging=figures,
        warnings=warnings,
        costs=costs,
        run_facts=run_facts,
    )
    _write(data, summary, answers, scores)
    return summary


def _signature(data: RunInputs, metrics: Metrics, split: Split, leaks_unchecked: bool) -> Signature:
    """The signature of a run with what these metrics and references change; no judge is in it."""
    signed = data.folder.signature()
    keys = metric_keys(metrics, split)
    if split != data.split:
        keys["references_sha256"] = split.references_sha256[:REFERENCES_LENGTH]
    elif data.folder.erased():  # the numbers of references of all items that were asked
        keys["references"] = signed.protocol.get("references", "1")
        if keys["references"] == "1":
            del keys["references"]
    if leaks_unchecked:
        keys["contracts"] += LEAKS_UNCHECKED
    return Signature({**_without_references(signed).protocol, **keys}, signed.subject)


def _score_baselines(
    folder: RunFolder, split: Split, metrics: Metrics, scores: Scores
) -> dict[str, Scored]:
    """Score the trivial answers, on the items that the model has a score for."""
    unscored = {}
    for item in scores.values():
        if item.unscored:
            unscored[item.id] = ItemScore(item.id, unscored=item.unscored)
    baselines = {}
    for name, replies in read_baselines(folder).items():
        same_items = {**score_answers(split, replies, 1, metrics), **unscored}
        baselines[name] = Scored(same_items, null_shares(split.scenarios, replies, same_items))
    return baselines


def _marks(split: Split, answers: Answers, signature: Signature) -> Iterator[str]:
    """Warnings of marks in the answers that their references lack."""
    references = {scenario.id: scenario.references for scenario in split.scenarios}
    texts = []
    for answer in answers.values():
        if isinstance(answer, Response):
            texts.append((answer.answer, references[answer.id]))
    return mark_warnings(texts, signature.subject.get("engine", ""))


def _label(signature: Signature) -> str:
    """What tables call the model of a run, or the people."""
    subject = signature.subject
    label = without_path(f"{subject['engine']}:{subject['model']}")
    if signature.human:
        label = f"Human replies ({subject['model']})"
    sap = subject.get("sap", "full")
    return label if sap in ("full", "unknown") else f"{label} (SAP {sap})"


def _prompt_sizes(data: RunInputs, split: Split, answers: Answers) -> list[PromptSize]:
    """The sizes of the prompts behind a run's answers whose tokens the server reported.

    Counts of 0, which some servers send for what they did not count, are left out.
    """
    if data.prompt_of is None:
        return []
    sizes = []
    for scenario in split.scenarios:
        for sample in range(data.spec.samples):
            answer = answers.get((scenario.id, sample))
            if isinstance(answer, Response) and answer.usage.input_tokens:
                characters = sum(len(message.content) for message in data.prompt_of(scenario))
                tokens = answer.usage.input_tokens
                sizes.append(PromptSize(scenario.language, characters, tokens))
                break
    return sizes


def report(path: Path, prompts: Path | None = None) -> Summary:
    """Write the tables and the page of a scored run again; `prompts` as of `load_run`. Raises DataError when it was
    never scored."""
    run = load_run(path, prompts)
    with writer_lock(run.data.folder.calls_file, WAIT):
        write_report(run.data, run.summary, run.answers, run.item_scores)
    return run.summary


def write_report(data: RunInputs, summary: Summary, answers: Answers, scores: Scores) -> None:
    """Write the tables and the page of a run."""
    write_tables(summary, data.split, scores, data.folder.tables)
    write_facts(summary, data.folder.tables)
    write_page(data.folder.page, summary, _item_views(data, answers, scores))


def _item_views(data: RunInputs, answers: Answers, scores: Scores) -> Iterator[ItemView]:
    for scenario in counted_items("writing the page", data.split.scenarios):
        stored = [answers.get((scenario.id, sample)) for sample in range(data.spec.samples)]
        responses = tuple(response for response in stored if response is not None)
        yield ItemView(scenario, data.shown_prompt(scenario), responses, scores[scenario.id])


def apply_judgements(path: Path, locked: bool = False) -> Summary:
    """Put the judgements and people's ratings of a scored run into its scores, tables and page."""
    with nullcontext() if locked else writer_lock(RunFolder(path).calls_file, WAIT):
        run = load_run(path)
        stored = run.summary
        judging = require_judging(run.data.folder)
        scores, figures, signature = rate_scores(
            run.data, judging, run.answers, run.item_scores, stored.signature
        )
        stored = replace(stored, signature=signature, costs=read_costs(path))
        summary = summarize_ratings(stored, run.data.split.scenarios, scores, figures)
        _write(run.data, summary, run.answers, scores)
        return summary


def _write(data: RunInputs, summary: Summary, answers: Answers, scores: Scores) -> None:
    write_report(data, summary, answers, scores)
    # Scores and summary together: one without the other is refused. Last: a restart scores again unless the summary is
    # the newest.
    path = data.folder.scores(summary.signature)
    write_scores(path, scores)
    data.folder.write_summary(summary.to_dict(), path)


def import_responses(
    path: Path, name: str, split_name: str, out: Path, embedder: str = "bge-m3", human: bool = False
) -> Summary:
    """Score a JSONL file of `id`, `response` against a split; ids that the file lacks stay unscored.

    The prompts are not known: the signature holds `prompts:unknown`, and the run compares only with imported ones.
    `name` is what the table calls the model, or the people (`human`: every table says so); `out` is a new run folder;
    `embedder` is as in `EvaluateSpec`.
    """
    if not name.strip():
        raise ConfigError("--name is empty; say what the table is to call the model")
    require_embedder(embedder)
    if (out / "run.json").exists():
        raise DataError(f"{out}: holds a run already; name a new folder with --out")
    if path.exists() and not path.is_file():  # it is read twice, a pipe is not
        raise DataError(f"{path}: is not a file; save the responses into one")
    split = load_split(split_name)
    responses = read_foreign_responses(path, {s.id for s in split.scenarios})
    metrics = open_metrics(embedder, "f1")
    samples = 1 + max(response.sample for response in responses)
    spec = EvaluateSpec(
        model=f"imported:{name}",
        split=split_name,
        out=str(out),
        samples=samples,
        temperature=1.0 if samples > 1 else 0.0,
        embedder=embedder,
    )
    subject = {
        "engine": HUMAN if human else "imported",
        "model": name,
        "file": hashlib.sha256(path.read_bytes()).hexdigest()[:16],
        "samples": str(samples),
        "sap": "unknown",
    }
    # Of people's replies the text alone: they have no model, no tokens and no request.
    replies = (
        Response(r.id, r.sample, r.text) if human and isinstance(r, Response) else r
        for r in responses
    )
    return store_answers(spec, split, subject, replies, metrics)


def store_answers(
    spec: EvaluateSpec, split: Split, subject: Mapping[str, str], answers: Replies, metrics: Metrics
) -> Summary:
    """Write answers whose prompts are not known as a new run, and score it."""
    protocol = {"items": split.fingerprint, "prompts": UNKNOWN, **metric_keys(metrics, split)}
    writer = RunWriter(
        RunFolder(spec.out_path), spec.to_dict(), Signature(protocol, subject), split, {}
    )
    try:
        for answer in answers:
            writer.calls.append(answer.to_dict())
        write_baselines(writer.folder, split, split)
        return score_run_data(read_run_data(spec.out_path), metrics)
    finally:
        writer.close()


class ErasableRun(ErasableFolder):
    """A run: prompt, answer and score of an item go."""

    folder_type: type[RunFolder] = RunFolder

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.folder = self.folder_type(path)
        self.folder.read_run()

    def locked(self) -> AbstractContextManager[None]:
        return writer_lock(self.folder.calls_file, "wait for it, then start the same erasure again")

    def items(self) -> Iterator[tuple[str, Record]]:
        return ((item.id, item.to_dict()) for item in self.folder.split().items)

    def record(self, gone: frozenset[str]) -> None:
        """Note the erased ids. Raises DataError where no item is left, or the items are not those signed."""
        split = self.folder.split()
        ids = self.erased() | gone
        signed = self.folder.signature().protocol.get("items", "")
        if self.folder.signed_items(split.fingerprint, signed) != signed:
            raise DataError(
                f"{self.folder.inputs}: not those of the {self.folder.kind}'s signature; put them back"
            )
        if not (items := [item for item in split.items if item.id not in ids]):
            raise DataError(
                f"{self.path}: every item of this {self.folder.kind} is erased; delete the folder"
            )
        fingerprint = fingerprint_of(items, split.personas)  # by which the run is still recognised
        engine, _, name = str(self.folder.read_run()["spec"].get("model")).partition(":")
        # The answers of such a baseline may be references of the erased items.
        if engine == "baseline" and name in NEEDS_REFERENCES:
            self._draw_again(name, split.scenarios, ids, gone)
        write_jsonl(
            self.path / ERASED, ({"id": item_id, "items": fingerprint} for item_id in sorted(ids))
        )

    def _draw_again(
        self,
        baseline: str,
        scenarios: Sequence[Scenario],
        erased: Set[str],
        gone: frozenset[str],
    ) -> None:
        """Replace the answers that are references of items that are gone now."""
        remaining = [scenario for scenario in scenarios if scenario.id not in erased]
        texts: set[str] = set()
        for scenario in scenarios:
            if scenario.id in gone:
                texts.update(scenario.references)
        redrawn = {}
        for answer in find_baseline(baseline)(remaining, remaining):
            redrawn[answer.id] = answer.to_dict()
        lines = []
        for _, line in read_jsonl(self.folder.calls_file, torn_tail=True):
            lines.append(redrawn.get(line["id"], line) if line.get("text") in texts else line)
        write_jsonl(self.folder.calls_file, lines)

    def remake(self) -> Iterator[str]:
        """Score again; where that fails, say which command does it."""
        scored = self.folder.summary.exists()
        try:
            yield from self.score()
        except (ConfigError, DataError, MissingExtraError) as error:
            remove_file(self.folder.summary)
            if scored:
                yield f"its figures were removed ({error}); {self.folder.score_again} ({self.path})"

    def score(self) -> Iterator[str]:
        """Draw the baselines again, whose answers may be references of erased items; then score. Yield what its owner
        has to know."""
        folder = self.folder
        split = self.folder.split()
        if folder.baselines.is_dir():
            write_baselines(folder, split, split)
        # Its hashes are those of the scores before the erasure.
        raw = read_json_object(folder.summary, missing_ok=True)
        keys = Signature.from_dict(raw.get("signature"), str(folder.summary)).protocol
        if "references_sha256" in keys:
            raise ConfigError("it was scored with private references: add --references FILE")
        rule: Any = keys.get(FILTERED_KEY, "refusal")
        metrics = open_metrics(
            keys["embedder"].partition("@")[0], keys["rouge"], keys["contracts"], rule
        )
        data = read_run_data(self.path)
        score_run_data(data, metrics)
        if (
            data.unrendered is not None
            and metrics.contracts
            and not keys["contracts"].endswith(LEAKS_UNCHECKED)
        ):
            command = f"`h2htalk score {self.path} --prompts {data.folder.prompts}`"
            yield f"its answers are scored without the contract's leak rule, which needs its templates: {command}"
