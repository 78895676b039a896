"""Presidio as the engine: our recognisers and a user's in its registry, one analysis a dialogue, its operators."""
