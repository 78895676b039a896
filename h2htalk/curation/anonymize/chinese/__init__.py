"""Recognise Chinese names, organisations and addresses; read `recognizer` first."""
