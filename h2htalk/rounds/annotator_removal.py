"""Remove an annotator's answers from a round: a spammer, or somebody who withdrew their consent; and restore them."""

from __future__ import annotations

from pathlib import Path

from h2htalk.data.records import as_path
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.annotator_changes import require_annotators
from h2htalk.rounds.assignment.remaining_annotations import below_overlap, describe_below_overlap
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.integrity import require_annotator_list, validate_round
from h2htalk.rounds.platforms import Collected
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import Status, compute_status, require_published


def remove_annotator(path: str | Path, name: str, *, why: str = "", undo: bool = False) -> tuple[Status, list[str]]:
    """Remove an annotator's answers from decisions, agreement, statistics and overlap, or restore them.

    The answers stay in annotations.jsonl and payment.csv; what the annotator answers later is not stored. A closed
    round stays closed: its results are renamed, and made anew from the other annotations. If the call is interrupted,
    the same call completes it.

    Args:
        path: the round, open or closed.
        name: of the annotator.
        why: reason, recorded in events.jsonl beside the salted hash of the name. Required to remove.
        undo: restore the annotator's answers.

    Returns:
        The round's status, and messages for the manager.

    Raises:
        RoundError: the name is unknown, there is no reason, or nothing was published yet.
        DataError: a file of the round is invalid, or the annotations of a closed round were changed.
    """
    folder = RoundFolder(as_path(path, "path")).require()
    if not why.strip() and not undo:
        raise RoundError("give the reason with --why; events.jsonl keeps it beside a hash of the name")
    with folder.locked():
        validate_round(folder)
        require_published(folder)
        require_annotator_list(folder)
        annotator = require_annotators(folder, [name])[name].id
        closed, renamed = folder.state == "closed", list[str]()
        changes = (annotator in folder.removed_annotators()) == undo
        if changes:
            renamed = folder.archive_outcome() if closed else []
            folder.add_event("restored" if undo else "removed", annotator=annotator, why=why.strip(), closed=closed)
        theirs = {key[0] for key in folder.stored_annotations() if key[1] == annotator}
    done = "count again" if undo else "do not count any more"
    already = "" if changes else ", as before this command"
    messages = [f"the annotations of {name} on {counted(len(theirs), 'item')} {done}{already}"]
    if not closed:
        return compute_status(folder, Collected()), messages
    status, _ = close_round(folder.path)
    if renamed:
        messages.append(f"the decisions were made anew; earlier results were renamed to {', '.join(renamed)}")
    return status, messages + _describe_closed(folder, status)


def _describe_closed(folder: RoundFolder, status: Status) -> list[str]:
    """Return what the manager of a closed round has to do next."""
    spec = folder.spec()
    short = {item: status.by_item[item] for item in {*status.missing, *status.exhausted}}
    messages = describe_below_overlap(spec, below_overlap(spec, folder.items(), short), "annotations")
    if status.missing:
        messages.append(f"the round stays closed; `h2htalk round reopen {folder.path}` asks other annotators")
    if "adjudicates" in folder.manifest():
        messages.append("apply this adjudication again: `h2htalk round close ROUND --adjudication` with this folder")
    return messages
