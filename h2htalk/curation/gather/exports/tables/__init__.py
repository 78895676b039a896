"""Tables and JSON lines with one message a row: which column holds what, and what a row is."""
