"""Write results as pictures, tables and self-contained pages."""
