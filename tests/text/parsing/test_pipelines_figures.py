"""What the bundled pipelines must reach on public test sets (`tools/train_pipelines.py --check` prints it)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))


@pytest.mark.slow
def test_the_bundled_pipelines_score_what_is_recorded_of_them(shared_data: Path) -> None:
    from pipelines.checking import accuracy, differing, recorded

    figures = accuracy(shared_data)
    assert {figure.what for figure in figures} == set(recorded())
    assert differing(figures, recorded()) == []
    assert [figure.what for figure in figures if not figure.reached] == []


def test_chinese_words_are_counted_alike_for_the_segmenter_and_the_parser() -> None:
    """One was scored sentence by sentence, the other without the treebank's own spaces."""
    from pipelines.checking import recorded

    figures = recorded()
    words = figures["zh parser, GSDSimp test, raw text: words F1"]
    assert figures["zh segmenter, GSDSimp test, raw text: words F1"] == words


def test_the_chinese_texts_are_eight_sentences_with_the_treebanks_own_spaces(tmp_path: Path) -> None:
    from pipelines.checking import CHINESE_TEST, chinese_texts
    from pipelines.scoring import raw_text

    rows = (("他", "SpaceAfter=No"), ("叫", "SpaceAfter=No"), ("Mary", "_"), ("Jo", "SpaceAfter=No"))
    sentence = "".join(
        f"{at}\t{form}\t_\tX\t_\t_\t{at - 1}\tdep\t_\t{misc}\n" for at, (form, misc) in enumerate(rows, start=1)
    )
    (tmp_path / CHINESE_TEST).parent.mkdir(parents=True)
    (tmp_path / CHINESE_TEST).write_text(f"{sentence}\n" * 9, encoding="utf-8")
    assert [raw_text(text) for text in chinese_texts(tmp_path)] == ["他叫Mary Jo" * 8, "他叫Mary Jo"]


@pytest.mark.parametrize(("value", "n", "differs"), [(0.665, 205, False), (0.66, 205, True), (0.6667, 204, True)])
def test_a_figure_differs_in_its_third_digit_or_in_what_it_rests_on(value: float, n: int, differs: bool) -> None:
    from pipelines.checking import Figure, differing

    stored = {"persons": {"value": 0.6667, "n": 205}}
    assert differing([Figure("persons", value, n)], stored) == (["persons"] if differs else [])
    assert differing([Figure("places", value, n)], stored) == ["places"]


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


def test_over_gold_words_heads_relations_and_names_are_counted() -> None:
    """Two roots, a wrong relation; an `I-` after nothing begins a name, as in the silver."""
    from pipelines.scoring import Tally, score_name_tags, score_trees
    from pipelines.treebanks import NamedSentence, Sentence, Word

    def sentence(*rows: tuple[str, int, str]) -> Sentence:
        return Sentence(tuple(Word(form, "X", "", "", head, rel, True) for form, head, rel in rows), "", True)

    gold = sentence(("feed", 0, "root"), ("my", 3, "det"), ("cats", 1, "obj"))
    read = sentence(("feed", 0, "root"), ("my", 3, "nmod"), ("cats", 0, "root"))
    scores = score_trees([gold], [read])
    assert (scores.upos.right, scores.uas.right, scores.las.right, scores.las.gold) == (3, 2, 1, 3)
    assert scores.objects == Tally(0, 1, 0)

    words, spaces = ("Ann", "Lee", "left", "Rome"), (True,) * 4
    named = NamedSentence(words, ("B-PERSON", "I-PERSON", "O", "B-LOC"), spaces)
    found = NamedSentence(words, ("I-PERSON", "I-PERSON", "I-LOC", "B-LOC"), spaces)
    tallies = score_name_tags([named], [found])
    assert (tallies["PERSON"], tallies["LOC"], tallies["ORG"]) == (Tally(1, 1, 1), Tally(1, 1, 2), Tally())


@pytest.mark.parametrize("name", ["en", "zh"])
def test_the_frozen_pairs_are_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Precision and recall 0.90 in English, 0.75 in Chinese; how blind each set is: tests/analysis/golden/README.md."""
    from eval_pairs import main

    assert main(["--language", name]) == 0, capsys.readouterr().out
