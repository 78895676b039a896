"""Names that are no personal data: people and figures whom everybody knows. One list a language."""
