"""Results turned into pictures and self-contained pages."""
