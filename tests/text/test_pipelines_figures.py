"""What the bundled pipelines must reach on public test sets (`tools/train_pipelines.py --check` prints it)."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))


def test_the_bundled_pipelines_score_what_is_recorded_of_them(shared_data: Path) -> None:
    from pipelines.checking import RECORDED, accuracy, differing

    figures = accuracy(shared_data)
    assert {figure.what for figure in figures} == set(json.loads(RECORDED.read_text()))
    assert differing(figures) == []
    assert [figure.what for figure in figures if not figure.reached] == []


def test_a_wrong_head_a_wrong_border_and_a_wrong_label_are_counted() -> None:
    """The scorer against hand counts: words 2 of 3 and 4, LAS only where word, head and relation are right."""
    import spacy
    from pipelines.scoring import Tally, score_names, score_parser
    from pipelines.treebanks import NamedSentence, Sentence, Word
    from spacy.tokens import Doc, Span

    def word(form: str, upos: str, head: int, deprel: str) -> Word:
        return Word(form, upos, "", "", head, deprel, True)

    gold = Sentence((word("feed", "VERB", 0, "root"), word("e-cats", "NOUN", 1, "obj:x")), "", True)

    class Fixed:
        def __init__(self, doc: Doc) -> None:
            self.doc = doc

        def pipe(self, texts: object) -> list[Doc]:
            list(texts)  # type: ignore[call-overload]
            return [self.doc]

    vocab = spacy.blank("en").vocab
    right = Doc(vocab, words=["feed", "e-cats"], pos=["VERB", "NOUN"], heads=[0, 0], deps=["ROOT", "obj"])
    scores = score_parser(Fixed(right), [[gold]])  # type: ignore[arg-type]
    assert scores.las.f1 == scores.uas.f1 == scores.words.f1 == scores.objects.f1 == 1

    cut = Doc(
        vocab,
        words=["feed", "e-", "cats"],
        pos=["NOUN", "X", "NOUN"],
        heads=[0, 0, 0],
        deps=["ROOT", "x", "obj"],
    )
    scores = score_parser(Fixed(cut), [[gold]])  # type: ignore[arg-type]
    assert (scores.words.right, scores.words.gold, scores.words.found) == (1, 2, 3)
    assert (scores.las.right, scores.upos.right, scores.objects.right) == (1, 0, 0)

    named = Doc(vocab, words=["Ann", "Lee", "left"])
    named.set_ents([Span(named, 0, 1, label="PERSON")])
    sentence = NamedSentence(("Ann", "Lee", "left"), ("B-PERSON", "I-PERSON", "O"), (True,) * 3)
    assert score_names(Fixed(named), [sentence])["PERSON"] == Tally(0, 1, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["en", "zh"])
def test_the_frozen_pairs_are_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Precision and recall 0.90 in English, 0.75 in Chinese; how blind each set is: tests/analysis/golden/README.md."""
    from eval_pairs import main

    assert main(["--language", name]) == 0, capsys.readouterr().out
