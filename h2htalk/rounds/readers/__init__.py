"""Who counts as a reader among the people of a round, and what nobody has read before them."""
