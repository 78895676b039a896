"""Rows of tables: Parquet files, and data sets of the `datasets` library, saved in a folder or on the Hub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from h2htalk.curation.gather.raw_items import OnRead
from h2htalk.data.releases.hub import hub_api, one_line, read_token
from h2htalk.errors import ConfigError, DataError, H2HTalkError, MissingExtraError, quoted

_BATCH = 256
# What `Dataset.save_to_disk` and `DatasetDict.save_to_disk` write.
_SAVED = ("state.json", "dataset_dict.json")
_HUB = re.compile(r"hub:([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})(?::([\w.-]+))?(?:#([\w.-]+))?")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A data set on the Hub at a commit: `hub:OWNER/NAME@COMMIT`, with `:CONFIG` and `#SPLIT` where it has several."""

    name: str
    commit: str
    config: str | None
    split: str | None

    def __str__(self) -> str:
        return f"hub:{self.name}@{self.commit}" + (f":{self.config}" if self.config else "")


def hub_dataset(path: str) -> HubDataset:
    """Parse `hub:OWNER/NAME@COMMIT[:CONFIG][#SPLIT]`; raises ConfigError where it is not of that form."""
    match = _HUB.fullmatch(path)
    if match is None:
        raise ConfigError(
            f"{quoted(path)} is not of the form hub:OWNER/NAME@COMMIT[:CONFIG][#SPLIT]; write all 40 digits of the "
            "commit, as a branch may change"
        )
    return HubDataset(*match.groups())


def is_saved_dataset(folder: Path) -> bool:
    """Whether a folder was written by `save_to_disk`."""
    return any((folder / name).is_file() for name in _SAVED)


def parquet_rows(path: Path, on_read: OnRead) -> Iterator[Row]:
    """The rows of a Parquet file, in order; raises DataError where it cannot be read."""
    try:
        with pq.ParquetFile(path) as file:
            size = path.stat().st_size // max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(_BATCH):
                on_read(size * batch.num_rows)
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {' '.join(str(error).split())[:200]}") from error


def dataset_rows(source: Path | HubDataset, split: str | None) -> Iterator[Row]:
    """The rows of a data set, in order.

    Args:
        source: a saved one's folder, or one of the Hub, which is downloaded.
        split: its name; None where there is only one.

    Raises:
        ConfigError: it cannot be loaded, or has several splits and none was named.
        MissingExtraError: the `datasets` package is not installed.
    """
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(str(source), 'pip install "h2htalk[release]"') from error
    try:
        if isinstance(source, HubDataset):
            hub_api()  # gives the session that `datasets` shares a timeout
            token = read_token() or False
            loaded = datasets.load_dataset(source.name, source.config, revision=source.commit, token=token)
        else:
            loaded = datasets.load_from_disk(str(source))
    except H2HTalkError:
        raise
    except Exception as error:  # its loaders raise errors of many packages: network, files, formats
        raise ConfigError(f"{source}: cannot be loaded: {one_line(error)}") from error
    if isinstance(loaded, Mapping):
        names = sorted(loaded)
        if split is None and len(names) == 1:
            split = names[0]
        if split not in names:
            raise ConfigError(f"{source}: name one of its splits with #SPLIT: {', '.join(names)}")
        loaded = loaded[split]
    return iter(loaded)
