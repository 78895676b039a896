"""Check what code can check of a subtask's answer: form, length, fields; read `contract` first."""
