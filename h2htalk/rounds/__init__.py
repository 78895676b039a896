"""Rounds: items put to people, their answers, and the decisions that follow from them."""
