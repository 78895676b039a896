"""Score answers: texts and references in; BLEU, ROUGE, SS (Eq. 1) and S (Eq. 2) out. Read `composite`, `lexical`."""
