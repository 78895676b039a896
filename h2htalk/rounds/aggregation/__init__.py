"""Turn votes into decisions: majority, Dawid-Skene, agreement, annotator statistics. Read `decisions` first."""
