"""Assign items to annotators and count what is still needed; read `assignments` first."""
