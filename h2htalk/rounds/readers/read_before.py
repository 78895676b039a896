"""Who has read the items of a new round before its annotators: a guard, also for a release (`release read`), the
reviewer, and the people of earlier rounds and samples.

A reading counts here as it counts for a release: with a certificate, or by enough people who count as readers, and for
the passages that it covers (`data/readers/coverage`). An item is read where all that annotators see of it was read for
each gate by which an item is announced. Old rounds that asked nothing, and reviews of earlier versions, read nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_jsonl
from h2htalk.data.links import link_folder
from h2htalk.data.readers.certificates import CERTIFICATES, Certificate, read_certificates
from h2htalk.data.readers.coverage import counted_gates, covered_by
from h2htalk.data.readers.item_reads import read_item_reads
from h2htalk.data.readers.reads import READS, Read, ReadGate, read_read
from h2htalk.data.records import read_record
from h2htalk.data.releases.release_folder import is_release, read_manifest
from h2htalk.data.stage_folders import is_workspace
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.reads import item_hashes, reads_of_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec

Record = Mapping[str, Any]
# What a reader finds for these gates is announced before an item's text.
ANNOUNCED: tuple[ReadGate, ...] = ("companion_harm", "explicit_content", "crisis_care")
READ = "read"  # the key of a reading in the audit of a guard and in the review of a candidate
CERTIFICATES_OF_RELEASE = Path(CERTIFICATES).stem  # their key in the facts of a release


@dataclass(frozen=True, slots=True)
class ReadBefore:
    """The readings that cover any passage of a round's items, by the hashes of the passages."""

    by_passage: Mapping[str, Sequence[Read]] = field(default_factory=dict)
    certificates: tuple[Certificate, ...] = ()

    def unread_gates(self, item: Item) -> tuple[ReadGate, ...]:
        """Return for which of `ANNOUNCED` nobody who counts has read all that annotators see of an item."""
        passages = item_hashes(item)
        reads = {
            id(read): read for passage in passages for read in self.by_passage.get(passage, ())
        }
        covered: dict[ReadGate, set[str]] = {gate: set() for gate in ANNOUNCED}
        for read in reads.values():
            for gate in counted_gates(read, item.language, self.certificates):
                if gate in covered:
                    covered[gate] |= covered_by(read, passages)
        return tuple(gate for gate in ANNOUNCED if not covered[gate].issuperset(passages))


def read_before(
    spec: RoundSpec, items: Sequence[Item], records: Mapping[str, Record]
) -> ReadBefore:
    """Return the readings of the items of a new round. `records`: those that the items were made from, by id.

    Raise DataError where a stored reading or certificate is damaged.
    """
    wanted = {passage for item in items for passage in item_hashes(item)}
    by_passage: dict[str, list[Read]] = defaultdict(list)
    sources: list[Iterable[Read]] = [_reads_of_reviews(records), _reads_of_rounds(spec)]
    certificates: tuple[Certificate, ...] = ()
    workspace = workspace_of(spec)
    if workspace is not None:
        sources += [_reads_of_guard(workspace, wanted), _reads_of_stage_review(workspace, wanted)]
        sources += [line.reads for line in read_item_reads(workspace).values()]
        certificates += read_certificates(workspace)
    release = _release_of(spec)
    if release is not None:
        manifest = read_manifest(release)
        if READS in manifest.files:
            sources.append(read_read(line, where) for where, line in read_jsonl(release / READS))
            stored = manifest.facts.get(CERTIFICATES_OF_RELEASE, [])
            where = f"{release}: release.json: facts.{CERTIFICATES_OF_RELEASE}"
            certificates += tuple(read_record(list[Certificate], stored, where))
    for source in sources:
        for read in source:
            for passage in covered_by(read, wanted):
                by_passage[passage].append(read)
    return ReadBefore(by_passage=by_passage, certificates=certificates)


def workspace_of(spec: RoundSpec) -> Path | None:
    """Return the workspace of a curation that the items of a round come from, also through other rounds."""
    source = Path(spec.items)
    earlier = RoundFolder(source)
    stored = str(earlier.source_paths().get("workspace", "")) if earlier.exists else ""
    workspace = Path(stored) if stored else link_folder(spec.items)
    return workspace if workspace is not None and is_workspace(workspace) else None


def _release_of(spec: RoundSpec) -> Path | None:
    """Return the release that the items of a round come from, of which they may be a part (`FOLDER#test`)."""
    source = str(spec.items)
    if is_release(Path(source)):
        return Path(source)
    whole = Path(source.rpartition("#")[0])
    return whole if "#" in source and is_release(whole) else None


def rounds_before(spec: RoundSpec) -> Iterator[RoundFolder]:
    """Yield the round that the items of a round come from, then the one that its items come from, and so on."""
    known = set[Path]()
    folder = RoundFolder(Path(spec.items))
    while folder.exists and folder.path.resolve() not in known:
        known.add(folder.path.resolve())
        yield folder
        folder = RoundFolder(Path(folder.spec().items))


def _reads_of_rounds(spec: RoundSpec) -> Iterator[Read]:
    for folder in rounds_before(spec):
        if folder.state == "closed":
            yield from reads_of_round(read_outcome(folder.path))


def _reads_of_reviews(records: Mapping[str, Record]) -> Iterator[Read]:
    """Yield what the reviewer has read of candidates, as their records hold it."""
    for name, record in records.items():
        review = record.get("review")
        if isinstance(review, Mapping) and isinstance(review.get(READ), Mapping):
            yield read_read(review[READ], f"{name}: review.{READ}")


def _reads_of_guard(workspace: Path, wanted: Collection[str]) -> Iterator[Read]:
    """Yield what a guard has read of any wanted passage, as the audit of the safety stage holds it."""
    for where, line in _lines_of_stage(workspace / "safety", "audit"):
        yield from _wanted_read(line.get(READ), where, wanted)


def _reads_of_stage_review(workspace: Path, wanted: Collection[str]) -> Iterator[Read]:
    """Yield what the reviewer has read in the stage `review`, which may have run after a round was opened."""
    for where, line in _lines_of_stage(workspace / "review", "kept"):
        review = line.get("review")
        yield from _wanted_read(
            review.get(READ) if isinstance(review, Mapping) else None, where, wanted
        )


def _wanted_read(raw: object, where: str, wanted: Collection[str]) -> Iterator[Read]:
    """Yield a stored reading if it covers any wanted passage; a workspace holds many more."""
    passages = raw.get("passages") if isinstance(raw, Mapping) else None
    if isinstance(passages, list) and any(passage in wanted for passage in passages):
        yield read_read(raw, where)


def _lines_of_stage(stage: Path, kind: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield the records of a finished stage with `file:line`; none of one that is not finished."""
    if (stage / "summary.json").is_file():
        for path in sorted((stage / kind).glob("part-*.jsonl")):
            yield from read_jsonl(path)
