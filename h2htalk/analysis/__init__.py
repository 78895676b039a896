"""What a split is made of: lengths, words, verb-noun pairs, diversity, coverage (paper, section 3.3)."""
