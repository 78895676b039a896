"""Turn votes into decisions: majority, Dawid-Skene, agreement, annotator statistics; read `decisions` first."""
