"""Recognise English names, organisations and addresses; read `recognizer` first."""
