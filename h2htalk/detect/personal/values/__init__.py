"""Find every form of a value in its dialogue, and check that none is left afterwards."""
