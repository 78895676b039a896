"""Erasure of items from attempts at shards, in a folder or on object storage."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

from h2htalk.benchmark.baselines import write_baselines
from h2htalk.benchmark.score_run import ErasableRun
from h2htalk.data.erasure.folder_kinds import ERASED, ErasedIds, FolderErasure, erase
from h2htalk.data.erasure.scratch import remove_scratch, scratch_folders, was_kept
from h2htalk.data.erasure.unfinished_erasure import MARK as ERASING
from h2htalk.data.files import json_line
from h2htalk.data.responses import CALLS, FailedResponse
from h2htalk.scale.attempts import (
    MANIFEST,
    MARK,
    PARTS,
    AttemptFolder,
    attempt_files,
    read_attempt,
    write_mark,
)
from h2htalk.scale.storage_folder import StorageFolder


class ErasableAttempt(ErasableRun):
    """An attempt: items go, and the mark of a finished one names the files that are left."""

    folder_type = AttemptFolder

    def remake(self) -> Iterator[str]:
        yield from ()
        if self.folder.baselines.is_dir():
            write_baselines(self.folder, self.folder.split(), self.folder.split())
        attempt = read_attempt(StorageFolder(str(self.path)))
        if attempt is not None and attempt.failed is not None:
            answers = self.folder.answers().values()
            failed = sum(isinstance(answer, FailedResponse) for answer in answers)
            write_mark(self.path, attempt.shard, failed, {})


def erase_stored(url: str, erased: ErasedIds) -> FolderErasure:
    """Erase from an attempt on object storage: a copy is erased from, its files take the place of those there. What was
    interrupted is completed by the next erasure."""
    storage = StorageFolder(url)
    if storage.path is not None:
        return erase(storage.path, erased)
    messages, unfinished = _erase_scratch(storage, erased)
    result = _erase_attempt(storage, erased)
    return replace(
        result, messages=(*messages, *result.messages), unfinished=result.unfinished or unfinished
    )


def _erase_scratch(storage: StorageFolder, erased: ErasedIds) -> tuple[list[str], bool]:
    """Erase from what attempts at a run left on this machine; returns messages, and whether something is left."""
    removed = remove_scratch(storage.run)
    messages = [f"deleted, left by a command that was killed: {path}" for path in removed]
    unfinished = False
    for path in scratch_folders(storage.run):
        if not was_kept(path):
            messages.append(f"{path}: a command works with this copy, and removes it at its end")
            continue
        for folder in sorted(inner for inner in path.iterdir() if inner.is_dir()):
            result = erase(folder, erased)
            messages += [f"{folder}: {message}" for message in result.messages]
            unfinished = unfinished or result.unfinished
    return messages, unfinished


def _erase_attempt(storage: StorageFolder, erased: ErasedIds) -> FolderErasure:
    attempt = read_attempt(storage)
    if attempt is None:
        message = "this attempt is not there any more; if it was moved, erase there too"
        return FolderErasure(messages=(message,), kind=AttemptFolder.kind)
    # A running attempt holds its lines back, and nobody reads what is half erased.
    storage.write(ERASING, b"")
    with attempt.opened() as folder:
        path = folder.path
        part_names = [part.relative_to(path).as_posix() for part in (path / PARTS).glob("*.jsonl")]
        shutil.rmtree(path / PARTS, ignore_errors=True)
        if not (path / CALLS).stat().st_size:  # it may have ended before its files were there
            tombstones = [json_line({"id": name}).encode() for name in sorted(erased.ids)]
            storage.write(ERASED, b"".join(tombstones))
            removable = {*attempt_files(path)} - {CALLS, ERASED}
            for name in sorted(removable, key=MANIFEST.__eq__):
                storage.remove(name)
            return FolderErasure(1, erased.ids, kind=AttemptFolder.kind)
        result = erase(path, erased)
        if result.items:
            # Also where an erasure before this one did not come so far.
            list(ErasableAttempt(path).remake())
            # First what a running attempt looks for, and the calls, in the place of their parts; the mark last.
            for name in dict.fromkeys([ERASED, CALLS, *attempt_files(path), MARK]):
                if (path / name).is_file():
                    storage.write(name, (path / name).read_bytes())
            for name in part_names:
                storage.remove(name)
    storage.remove(ERASING)
    return result
