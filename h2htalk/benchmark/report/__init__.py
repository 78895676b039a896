"""Tables and pages of a run: terminal, CSV, JSON, LaTeX, HTML."""
