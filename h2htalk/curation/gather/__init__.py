"""Read raw files of any known format, or simulate conversations, into dialogues; read `stage` first."""
