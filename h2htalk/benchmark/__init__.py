"""A model and a split in, numbers out."""
