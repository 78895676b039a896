"""Evidence: what a layer saw, and how it stands in a record."""

from h2htalk.curation.evidence import Evidence


def test_evidence_says_where_but_never_what_was_written() -> None:
    piece = Evidence("lexicon", "spam.advert", 0.85, 3, 9)
    assert piece.to_dict() == {
        "layer": "lexicon",
        "category": "spam.advert",
        "score": 0.85,
        "start": 3,
        "end": 9,
    }


def test_evidence_of_a_whole_text_needs_no_span() -> None:
    assert (Evidence("classifier", "offensive", 0.9).start, Evidence("classifier", "offensive", 0.9).end) == (
        0,
        0,
    )
