"""What things are and where they lie. No model is called here."""
