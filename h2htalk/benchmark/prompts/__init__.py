"""Turn a scenario into messages: templates, persona and SAP; read `prompt_set` first."""
