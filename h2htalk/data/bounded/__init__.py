"""Files and replies that others made, in bounded memory: the bounds (read `bounds.py` first), and rows of Parquet."""
