"""Check the form, length and fields of a subtask's answer; read `contract` first."""
