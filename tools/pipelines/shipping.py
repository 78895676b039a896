"""The folder of a pipeline as it ships: weights, licence, attribution, and no word of the training texts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import spacy
from spacy.language import Language

from h2htalk.text.parsing.parsing import MODELS

DESCRIPTIONS = {
    "zh_parser": "Chinese tagger and parser, Universal Dependencies",
    "en_parser": "English tagger and parser, Universal Dependencies",
}
VERSION = "1.0.0"


def ship(nlp: Language, name: str) -> None:
    """Write the pipeline into the package, beside the licence files that lie there already."""
    folder = MODELS / name
    kept = {path.name: path.read_bytes() for path in folder.glob("*.md")} | {
        path.name: path.read_bytes() for path in folder.glob("LICENSE*")
    }
    shutil.rmtree(folder, ignore_errors=True)
    nlp.meta.update(
        name=name,
        version=VERSION,
        description=DESCRIPTIONS[name],
        author="The h2htalk authors",
        license="CC BY-SA 4.0",
        performance={},
    )
    nlp.to_disk(folder)
    prune_strings(nlp, folder)
    for file, content in kept.items():
        (folder / file).write_bytes(content)


def prune_strings(nlp: Language, folder: Path) -> None:
    """Drop the words of the training texts from the vocabulary's strings: features are hashes and need none.

    What stays are the strings that a fresh pipeline of this language knows, and the labels.
    """
    needed = set(spacy.blank(nlp.lang if nlp.lang == "en" else "xx").vocab.strings)
    for component in nlp.pipe_names:
        pipe = nlp.get_pipe(component)
        for label in getattr(pipe, "labels", ()):
            needed |= {label, *label.split("|"), *label.split("="), *label.split("||")}
        for key, value in getattr(pipe, "cfg", {}).get("labels_morph", {}).items():
            needed |= {key, value, *value.split("|")}
    for case in getattr(nlp.tokenizer, "rules", {}).values():
        needed |= {str(text) for token in case for text in token.values()}
    path = folder / "vocab/strings.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(
        json.dumps([text for text in stored if text in needed], ensure_ascii=False),
        encoding="utf-8",
    )
