"""Load the packaged spaCy pipelines and parse text; read `parsing` first."""
