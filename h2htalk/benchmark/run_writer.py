"""Create or resume a run folder: the one writer of its call store."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from h2htalk.chat.store.call_store import CallStore
from h2htalk.data.files import missing_folders, remove_file, remove_folders, write_json, write_text
from h2htalk.data.links import add_link, link_folder
from h2htalk.data.responses import CALLS, Answers, FailedResponse, Response, fold_answer
from h2htalk.data.run_folder import HALF_WRITTEN, SOURCE, RunFolder, require_asked
from h2htalk.data.signature import Signature
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import Split
from h2htalk.version import __version__


class RunWriter:
    """The one writer of a run folder: creates or resumes it, and stores answers as they come.

    `answers` holds what the folder held when it was opened, `calls` is its open call store.
    """

    def __init__(
        self,
        folder: RunFolder,
        spec: Mapping[str, Any],
        signature: Signature,
        split: Split,
        prompts: Mapping[str, str],
        calls: CallStore | None = None,
    ) -> None:
        """Open for writing; a new folder gets its inputs and run.json before this returns.

        `calls` is the folder's call store, which this opens; None makes it. Raises ConfigError where the folder holds a
        run of another signature, and DataError where it cannot be used. Then everything created here is removed.
        """
        self.folder, self.answers = folder, Answers()
        ids, samples = frozenset(scenario.id for scenario in split.scenarios), int(spec.get("samples", 1))

        def remember(response: Response | FailedResponse, where: str) -> None:
            if not split.cases:  # a study asks more about a case than its turns
                require_asked(response, ids, samples, where)
            fold_answer(self.answers, response)

        folder.require_usable(signature)
        self._new, self._made = False, missing_folders(folder.path)
        self.calls = calls or CallStore(folder.shard)
        self.calls.on_outcome = remember
        try:
            self.calls.open()
        except BaseException:  # passed on; a start that failed leaves no folder
            remove_folders(self._made)
            raise
        try:
            self._new = not folder.manifest.exists()
            if not self._new:  # another process may have begun the run before this had the lock
                folder.require_usable(signature)
            # Before the run holds a copy of the items: an erasure finds it even if it is interrupted now.
            if (source := link_folder(str(spec.get("ask", spec).get("split", "")))) is not None:
                add_link(source, folder.kind, folder.path)
            if self._new:
                self._write_inputs(split, prompts)
                run = {"spec": dict(spec), "signature": signature.to_dict(), "package_version": __version__}
                if split.source:
                    run["split"] = {key: getattr(split, key) for key in SOURCE}
                write_json(folder.manifest, run)
        except BaseException:  # passed on; a start that failed leaves no folder
            self.discard()
            raise

    def _write_inputs(self, split: Split, prompts: Mapping[str, str]) -> None:
        # A killed start may have left half of them; without run.json they are not used.
        shutil.rmtree(self.folder.inputs, ignore_errors=True)
        for half_written in self.folder.path.glob(HALF_WRITTEN):
            half_written.unlink()
        export_split(split, self.folder.inputs / "split")
        for name, text in prompts.items():
            write_text(self.folder.prompts / name, text)

    def store(self, response: Response | FailedResponse) -> None:
        """Append one answer or failure that cost nothing. Raises DataError when it cannot be stored."""
        self.calls.append(response.to_dict())

    def close(self) -> None:
        self.calls.close()

    def discard(self) -> None:
        """Close, and remove what this writer created if nothing is lost with it."""
        self.close()
        if self._new and self.calls.worthless():
            for made in (self.folder.inputs, self.folder.path / "judgements"):  # of a study: the key of its fences
                shutil.rmtree(made, ignore_errors=True)
            for name in (self.folder.manifest.name, CALLS, "calls.lock"):
                remove_file(self.folder.path / name)
            remove_folders(self._made)
