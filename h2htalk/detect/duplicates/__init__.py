"""Find dialogues that say nearly the same, and items of splits in dialogues.

In: dialogues. Out: pairs, with their similarity. Candidates by MinHash, then exact similarity. `BANDS` in `signatures`
sets the recall (`tools/bench_dedup.py`). Read `compared_texts` first, then `signatures`.
"""
