"""Names that are not personal data: people and figures whom everybody knows, one file for each language."""
