"""Score answers: BLEU and ROUGE, semantic similarity (Eq. 1), composite S (Eq. 2)."""
