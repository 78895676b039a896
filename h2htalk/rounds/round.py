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
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.guidelines import guidelines
from h2htalk.rounds.item_sources import read_items
from h2htalk.rounds.items import Item, check_values
from h2htalk.rounds.plan import Wave, group, may_see, seat
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.spec import PANEL, RoundSpec, require_same
from h2htalk.rounds.status import Status, bring_in, status_of
from h2htalk.rounds.voters import Voter, made_up, read_voters
from h2htalk.rounds.wanting import still_wanted


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
    if folder.exists:
        require_same(folder.spec(), spec, out)
    backend = open_backend(spec.backend)
    items = _items(spec)
    questions = questions_for(spec.kind, [item.labels for item in items])
    items = tuple(check_values(_fitting(item, questions), questions) for item in items)
    with folder.locked():
        if folder.exists:
            _require_same_items(folder, items)
        else:
            _lay_out(folder, spec, items, questions)
        backend.check(folder)
        if not folder.waves():
            wanted = {item.id: _first(spec) for item in items}
            folder.write_waves([_wave(folder, backend, 1, items, wanted)])
        told = backend.publish(folder)
        if folder.state == "half opened":
            folder.note("opened", items=len(items), voters=len(folder.voters()))
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
    write_jsonl(folder.path / "items.jsonl", (item.to_dict() for item in items))
    for language, text in texts.items():
        write_text(folder.path / "guidelines" / f"{language}.md", text)
    write_text(folder.path / ".gitignore", "private/\nballots/\n")
    facts = {
        "name": folder.path.resolve().name,
        "spec": spec.to_dict(),
        "languages": list(languages),
        "questions": [question.name for question in questions],
        "items_sha256": fingerprint(items),
    }
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


def _first(spec: RoundSpec) -> int:
    return spec.adaptive.minimum if spec.adaptive.on else spec.answers


def _wave(
    folder: RoundFolder, backend: Backend, number: int, items: Sequence[Item], wanted: Mapping[str, int]
) -> Wave:
    spec, voters = folder.spec(), folder.voters()
    seen = {(s.item, s.voter) for wave in folder.waves() for s in wave.seats}
    seen |= {(item, voter) for item, voter, _ in folder.answers()}
    # Seating is drawn for a server too: it shows whether there are voters enough.
    seated = seat(number, items, wanted, voters, seen, spec.care, spec.seed)
    return seated if backend.assigns else group(number, items, wanted, spec.care, spec.seed)


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

    Raises:
        RoundError: a name is nobody's, nothing wants answers, or there is nobody left to ask.
    """
    folder = RoundFolder(path)
    spec = folder.spec()
    backend = open_backend(spec.backend)
    with folder.locked():
        backend.check(folder)
        if folder.state != "closed":
            bring_in(folder)
        folder.write_voters(_changed(folder, without, voters))
        items, questions, answers = folder.items(), folder.questions(), folder.answers()
        wanted = still_wanted(spec, items, questions, answers, ties=True)
        if not wanted:
            raise RoundError(f"{path}: no item wants another answer; there is nothing to hand out again")
        asked, beyond = _to_ask(folder, wanted, backend.assigns)
        if beyond and not asked:
            raise RoundError(
                f"{path}: {beyond} items want answers, and everybody who may see them has been asked; add people with "
                "--voters, or close the round and open an adjudication over its ties"
            )
        waves = list(folder.waves())
        if asked:
            waves.append(_wave(folder, backend, len(waves) + 1, items, asked))
            folder.write_waves(waves)
        told = backend.publish(folder)
        if asked or folder.state == "closed":
            folder.note("reopened", items=len(asked), answers=sum(asked.values()), without=len(without))
        return status_of(folder, Pulled(())), told


def _changed(folder: RoundFolder, without: Sequence[str], path: Path | None) -> tuple[Voter, ...]:
    known = {voter.name: voter for voter in folder.voters()}
    strangers = sorted(set(without) - known.keys())
    if strangers:
        raise RoundError(
            f"{folder.path}: no voter is called {', '.join(strangers)}; they are {', '.join(known)}"
        )
    joined = read_voters(path, folder.salt()) if path is not None else ()
    known |= {voter.name: voter for voter in joined}
    return tuple(replace(v, here=False) if v.name in without else v for v in known.values())


def _to_ask(folder: RoundFolder, wanted: Mapping[str, int], assigns: bool) -> tuple[dict[str, int], int]:
    """What a further wave is to ask: item -> answers, beside those that people still have before them.

    Returns:
        It, and the number of items for which nobody is left to be asked.
    """
    answers, voters = folder.answers(), folder.voters()
    met = {(item, voter) for item, voter, _ in answers}
    seated = {(one.item, one.voter) for wave in folder.waves() for one in wave.seats}
    done = answered_items(folder.items(), folder.questions(), answers)
    asked: dict[str, int] = {}
    beyond = 0
    for item in folder.items():
        if item.id not in wanted:
            continue
        free = [v.id for v in voters if may_see(v, item) and (item.id, v.id) not in met]
        if assigns:
            waiting = sum((item.id, voter) in seated for voter in free)
            others = len(free) - waiting
        else:
            # A server offers an item until it has what its waves want.
            out = sum(wave.wanted.get(item.id, 0) for wave in folder.waves())
            waiting = min(max(0, out - len(done[item.id])), len(free))
            others = len(free) - waiting
        count = min(wanted[item.id] - waiting, others)
        if count > 0:
            asked[item.id] = count
        beyond += wanted[item.id] > waiting and not others
    return asked, beyond
