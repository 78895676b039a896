"""A round's life: open, and open again for what still wants answers. Each step may be killed and repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from h2htalk.data.dialogue import Language
from h2htalk.data.files import json_line, write_json, write_jsonl, write_text
from h2htalk.errors import RoundError
from h2htalk.rounds.backends import Backend, Pulled, open_backend
from h2htalk.rounds.decide import answered_items
from h2htalk.rounds.folder import PATHS, RoundFolder
from h2htalk.rounds.guidelines import guidelines
from h2htalk.rounds.item_sources import read_items
from h2htalk.rounds.items import Item, check_values
from h2htalk.rounds.outstanding import reach, to_ask
from h2htalk.rounds.plan import Wave, group, seat
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.spec import PANEL, RoundSpec, require_same
from h2htalk.rounds.status import Status, bring_in, status_of
from h2htalk.rounds.ties import source_of
from h2htalk.rounds.voter_list import changed_voters, require_same_voters, voters_print
from h2htalk.rounds.voters import Voter, made_up, read_voters
from h2htalk.rounds.wanting import first_wanted, still_wanted


def open_round(spec: RoundSpec, out: Path) -> tuple[Status, list[str]]:
    """Open a round, or finish opening it; a round that is open already is left as it is.

    Args:
        spec: what to open.
        out: its folder.

    Returns:
        Its status, and what the backend tells the manager.

    Raises:
        RoundError, DataError, ConfigError: the items, voters or settings cannot make a round, another round is
            there, or the backend cannot be reached; nothing has gone out then that the same command would not find.
    """
    folder = RoundFolder(out)
    # Before a wave is written nothing can be out: what was refused then may be opened otherwise.
    begun = folder.exists and bool(folder.waves())
    if begun:
        require_same(folder.spec(), spec, out)
    backend = open_backend(spec.backend)
    # A round that was adjudicated from has no ties any more: what its adjudication asks stands in the adjudication.
    items = folder.items() if begun and "over" in folder.facts() else _items(spec)
    questions = questions_for(spec.kind, [item.labels for item in items])
    items = tuple(check_values(_fitting(item, questions), questions) for item in items)
    with folder.locked():
        if begun:
            _require_same_items(folder, items)
            require_same_voters(folder, spec)
        else:
            _lay_out(folder, spec, items, questions)
        backend.check(folder)
        if not folder.waves():
            wanted = first_wanted(spec, items, folder.voters())
            folder.write_waves([_wave(folder, backend, 1, items, wanted, folder.voters())])
        told = backend.publish(folder)
        if folder.state == "half opened":
            folder.note("opened", items=len(items), voters=len(folder.voters()))
        folder.protect()
        return status_of(folder, Pulled(())), told


def _items(spec: RoundSpec) -> tuple[Item, ...]:
    items = read_items(spec.items, spec.status)
    for item in items:
        # What an item is, an adjudicator cannot judge without its reply.
        if spec.kind in ("safety", "adjudication") and not item.response and not item.labels:
            raise RoundError(
                f"{spec.items}: {item.id} has no response; a round of {spec.kind} needs the reply that is judged"
            )
    return items


def _fitting(item: Item, questions: Sequence[Question]) -> Item:
    """Without suggestions for what this round does not ask."""
    names = {question.name for question in questions}
    return replace(item, suggested={key: value for key, value in item.suggested.items() if key in names})


def _lay_out(
    folder: RoundFolder, spec: RoundSpec, items: Sequence[Item], questions: Sequence[Question]
) -> None:
    """Everything but what goes out. `round.json` comes last: without it there is no round yet."""
    salt = folder.salt()
    languages = _languages(items)
    voters = (
        read_voters(Path(spec.voters), salt) if spec.voters else made_up(PANEL[spec.kind], languages, salt)
    )
    texts = {language: guidelines(spec, questions, language) for language in languages}
    folder.write_voters(voters)
    places = {name: str(getattr(spec, name)) for name in PATHS}
    folder.write_places(places | {"voters_sha256": voters_print(voters)})
    write_jsonl(folder.path / "items.jsonl", (item.to_dict() for item in items))
    for language, text in texts.items():
        write_text(folder.path / "guidelines" / f"{language}.md", text)
    write_text(folder.path / ".gitignore", "private/\nballots/\n")
    facts = {
        "name": folder.path.resolve().name,
        "spec": spec.to_dict() | {name: Path(place).name for name, place in places.items()},
        "languages": list(languages),
        "questions": [question.name for question in questions],
        "items_sha256": fingerprint(items),
    }
    if (Path(spec.items) / "round.json").is_file():
        facts["over"] = source_of(Path(spec.items))
    write_json(folder.path / "round.json", facts)


def fingerprint(items: Sequence[Item]) -> str:
    """SHA-256 over the items in the order of their ids, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for item in sorted(items, key=lambda item: item.id):
        digest.update(json_line(item.to_dict()).encode())
    return digest.hexdigest()[:16]


def _require_same_items(folder: RoundFolder, items: Sequence[Item]) -> None:
    if folder.facts().get("items_sha256") != fingerprint(items):
        raise RoundError(
            f"{folder.path}: this round was opened on other items than {folder.spec().items} holds now; "
            "choose another --out for them"
        )


def _languages(items: Sequence[Item]) -> tuple[Language, ...]:
    return tuple(sorted({item.language for item in items}))


def _wave(
    folder: RoundFolder,
    backend: Backend,
    number: int,
    items: Sequence[Item],
    wanted: Mapping[str, int],
    voters: Sequence[Voter],
) -> Wave:
    spec = folder.spec()
    seen = {(s.item, s.voter) for wave in folder.waves() for s in wave.seats}
    seen |= {(item, voter) for item, voter, _ in folder.answers()}
    # Seating is drawn for a server too: it shows whether there are voters enough.
    # Nobody can choose what an adjudication or a later wave is about.
    alone = number > 1 or spec.kind == "adjudication"
    seated = seat(number, items, wanted, voters, seen, spec.care, spec.seed, alone=alone)
    return seated if backend.assigns else group(number, items, wanted, spec.care, spec.seed, alone=alone)


def reopen_round(
    path: Path, *, without: Sequence[str] = (), voters: Path | None = None
) -> tuple[Status, list[str]]:
    """Hand out again what still wants answers: to others than answered it, and than `without`.

    What wants answers: items short of them (skips, drop-outs), items on which an adaptive round is not sure, and ties
    that one more answer could break.

    Args:
        path: the round, open or closed.
        without: names of voters who dropped out; what they answered stays.
        voters: a CSV file of voters who join; those of the round in it change their languages or wishes.

    Voters change, and anything goes out, only once every answer that is asked for has somebody to give it.

    Raises:
        RoundError: a name is nobody's, nothing wants answers, or there is nobody left to ask.
    """
    folder = RoundFolder(path)
    spec = folder.spec()
    backend = open_backend(spec.backend)
    with folder.locked():
        backend.check(folder)
        offered = bring_in(folder)[0].offered if folder.state != "closed" else None
        people = changed_voters(folder, without, voters)
        items, questions, answers = folder.items(), folder.questions(), folder.answers()
        wanted = still_wanted(spec, items, questions, answers, people, ties=True)
        if not wanted and people == folder.voters():
            raise RoundError(f"{path}: no item wants another answer; there is nothing to hand out again")
        waves = list(folder.waves())
        done = answered_items(items, questions, answers)
        reached = reach([item for item in items if item.id in wanted], waves, people, answers, done, offered)
        asked, beyond = to_ask(wanted, reached, whole=not backend.assigns)
        if beyond and not asked:
            raise RoundError(
                f"{path}: {beyond} items want answers, and everybody who may see them has been asked; add people with "
                "--voters, or close the round and open an adjudication over its ties; nothing was changed"
            )
        if asked:
            waves.append(_wave(folder, backend, len(waves) + 1, items, asked, people))
        _write_changes(folder, people)
        folder.write_waves(waves)
        told = [_told(asked, beyond, sum(reached[name].waiting for name in wanted)), *backend.publish(folder)]
        if asked or (wanted and folder.state == "closed"):
            moved = folder.set_aside()
            if moved:
                told.append(f"the round is open again; what its closing wrote is now {', '.join(moved)}")
            folder.note("reopened", items=len(asked), answers=sum(asked.values()), without=len(without))
        folder.protect()
        return status_of(folder, Pulled(())), told


def _write_changes(folder: RoundFolder, people: Sequence[Voter]) -> None:
    """Store who is asked from now on; who came, left or changed is an event of its own, by salted hash."""
    before = {voter.id: voter for voter in folder.voters()}
    other = [voter for voter in people if before.get(voter.id) != voter]
    if not other:
        return
    folder.note(
        "voters",
        joined=[voter.id for voter in other if voter.id not in before],
        left=[voter.id for voter in other if not voter.here],
        changed=[voter.id for voter in other if voter.here and voter.id in before],
    )
    folder.write_voters(people)


def _told(asked: Mapping[str, int], beyond: int, waiting: int) -> str:
    """What was handed out, and what was not and why."""
    if asked:
        more = f"; for {beyond:,} more nobody is left to ask" if beyond else ""
        return f"{sum(asked.values()):,} answers to {len(asked):,} items are handed out{more}"
    if waiting:
        return (
            f"nothing new is handed out: all {waiting:,} answers that are wanted lie before people who have not given "
            "them yet; wait, or name who dropped out with --without"
        )
    return "nothing is handed out, as no item wants another answer; the change of voters is recorded"
