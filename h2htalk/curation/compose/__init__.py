"""Make candidate scenarios from dialogues, cut from them or written by a model; read `stage` first."""
