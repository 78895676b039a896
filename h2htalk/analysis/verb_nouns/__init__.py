"""Find and count verb-noun pairs; `pairs` holds the records, `english` and `chinese` the rules."""
