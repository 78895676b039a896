"""Find every form of a known value of a dialogue again, and check that none is left."""
