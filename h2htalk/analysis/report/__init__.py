"""Write the folder of an analysis: tables, figures, page, terminal; read `write_analysis` first."""
