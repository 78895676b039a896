"""Reading treebanks and name sets, and what training makes of them (tools/pipelines)."""

import sys
from pathlib import Path

import pytest
import spacy

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from pipelines.english_tokenizer import english_tokenizer
from pipelines.name_swaps import swapped
from pipelines.scoring import raw_text
from pipelines.shipping import prune_strings
from pipelines.silver import cut_sentences, with_borders
from pipelines.treebanks import (
    NamedSentence,
    Sentence,
    Word,
    named_docs,
    parsed_docs,
    read_conll,
    read_conllu,
    read_uner,
    split_blocks,
)
from train_pipelines import main, settle_teacher

CONLLU = """# newdoc id = a
# text = I don't.
1\tI\tI\tPRON\tPRP\t_\t3\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\tVBP\t_\t3\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t0\troot\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

# text = Go!
1\tGo\tgo\tVERB\tVB\tMood=Imp\t0\troot\t_\tSpaceAfter=No
2\t!\t!\tPUNCT\t.\t_\t1\tpunct\t_\t_

"""


def test_a_split_word_touches_inside_and_ends_as_the_whole_does(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU, encoding="utf-8")
    first, second = read_conllu(tmp_path / "a.conllu")
    assert [(w.form, w.space_after) for w in first.words] == [
        ("I", True),
        ("do", False),
        ("n't", False),
        (".", True),
    ]
    assert (first.starts_document, second.starts_document) == (True, False)
    assert raw_text([first, second]) == "I don't. Go!"
    assert second.words[0].feats == "Mood=Imp"


def test_sentences_of_one_document_share_a_doc_with_their_heads(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU, encoding="utf-8")
    docs = list(parsed_docs(read_conllu(tmp_path / "a.conllu"), spacy.blank("en").vocab, str, seed=1))
    assert "".join(doc.text_with_ws for doc in docs) == "I don't. Go! "
    last = docs[-1]
    assert (last[-2].text, last[-2].dep_, last[-2].head.text) == ("Go", "ROOT", "Go")


def test_a_tag_without_a_beginning_begins_and_foreign_labels_are_none(tmp_path: Path) -> None:
    tags = (("Ann", "I-PER"), ("Lee", "I-PER"), ("sings", "O"), ("Yesterday", "B-OTH"))
    rows = "# text = Ann Lee sings Yesterday\n"
    rows += "".join(f"{at}\t{word}\t{tag}\t-\t-\n" for at, (word, tag) in enumerate(tags, start=1))
    (tmp_path / "a.iob2").write_text(rows, encoding="utf-8")
    (sentence,) = read_uner(tmp_path / "a.iob2", spaced=True)
    assert sentence.tags == ("B-PERSON", "I-PERSON", "O", "O")
    (doc,) = named_docs([sentence], spacy.blank("en").vocab)
    assert [(entity.text, entity.label_) for entity in doc.ents] == [("Ann Lee", "PERSON")]


def test_a_handle_is_no_persons_name(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("@ann\tB-PER\nAnn\tB-PER\n\n", encoding="utf-8")
    (sentence,) = read_conll(tmp_path / "a.conll")
    assert sentence.tags == ("O", "B-PERSON")


def test_every_tenth_block_of_five_is_held_out() -> None:
    train, dev = split_blocks(list(range(100)))
    assert dev == [*range(45, 50), *range(95, 100)]
    assert sorted(train + dev) == list(range(100))


def test_runs_of_marks_stay_whole_and_a_prefix_keeps_its_hyphen() -> None:
    nlp = spacy.blank("en")
    nlp.tokenizer = english_tokenizer(nlp, [])
    words = [token.text for token in nlp("Wow!!! My co-workers e-mailed a well-known he/she 7pm plan... don't")]
    assert words == [
        *("Wow", "!!!", "My", "co-workers", "e-mailed", "a", "well", "-", "known", "he", "/", "she"),
        *("7", "pm", "plan", "...", "do", "n't"),
    ]


def test_the_treebanks_own_cut_is_learned_when_it_is_seen_often() -> None:
    def word(form: str, space: bool) -> Word:
        return Word(form, "X", "", "", 0, "root", space)

    seen = Sentence((word("gon", False), word("nago", True)), "", True)
    nlp = spacy.blank("en")
    assert [t.text for t in english_tokenizer(nlp, [seen] * 3)("gonnago")] == ["gon", "nago"]
    assert [t.text for t in english_tokenizer(nlp, [seen] * 2)("gonnago")] == ["gonnago"]


def test_texts_are_cut_into_sentences_that_remember_where_a_text_began() -> None:
    cut = list(cut_sentences(spacy.blank("en"), ["I sat down. Nice day! X", "You too."]))
    assert [(" ".join(words), starts) for words, _, starts in cut] == [
        ("I sat down .", True),
        ("Nice day !", False),
        ("You too .", True),
    ]
    tree = Sentence((), "", False)
    kept = list(with_borders([None, tree, tree], [True, False, True]))
    assert [sentence.starts_document for sentence in kept] == [True, True]


def test_a_swapped_name_is_one_word_with_the_rest_untouched() -> None:
    sentence = NamedSentence(("王", "明", "来", "了"), ("B-PERSON", "I-PERSON", "O", "O"), (False,) * 4)
    plain = NamedSentence(("来",), ("O",), (False,))
    (copy,) = swapped([plain, sentence], ["李小龙"], seed=1)
    assert copy.tags == ("B-PERSON", "O", "O")
    assert copy.words[1:] == ("来", "了")
    assert len(copy.words[0]) in (2, 3)


def test_pruning_drops_words_and_keeps_labels(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("ner").add_label("PERSON")
    nlp.initialize()
    nlp("Zebediah secret-handle")
    nlp.to_disk(tmp_path)
    assert "Zebediah" in (tmp_path / "vocab/strings.json").read_text()
    prune_strings(nlp, tmp_path)
    assert "Zebediah" not in (tmp_path / "vocab/strings.json").read_text()
    again = spacy.load(tmp_path)
    assert again.get_pipe("ner").labels == ("PERSON",)
    again("It still runs.")


def test_a_stored_teacher_is_reused_with_a_word_about_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was taken in silence, whatever it had been trained on."""
    stored = tmp_path / "en_teacher.pt"
    stored.write_text("weights")
    settle_teacher(stored, fresh=False)
    said = capsys.readouterr().out
    assert f"reusing {stored}" in said
    assert "--fresh en_teacher" in said
    assert stored.read_text() == "weights"


def test_fresh_sets_a_stored_teacher_aside_so_that_one_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = tmp_path / "en_teacher.pt"
    stored.write_text("weights")
    settle_teacher(stored, fresh=True)
    aside = tmp_path / "en_teacher.previous.pt"
    assert not stored.exists()
    assert aside.read_text() == "weights"
    assert str(aside) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--check-teacher"], "train it: python tools/train_pipelines.py en_teacher"),
        (["--fresh", "en_parser"], "name en_teacher too"),
        ([], "name pipelines to train, or --check or --check-teacher"),
    ],
)
def test_what_cannot_be_done_is_refused_with_advice(
    options: list[str],
    advice: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["train_pipelines.py", "--data", str(tmp_path), "--work", str(tmp_path), *options])
    with pytest.raises(SystemExit):
        main()
    assert advice in " ".join(capsys.readouterr().err.split())
