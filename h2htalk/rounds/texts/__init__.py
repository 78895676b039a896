"""The questions, labels and guidelines of rounds in the annotators' languages."""
