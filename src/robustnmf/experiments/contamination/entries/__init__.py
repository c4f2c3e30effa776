"""How the methods bear bad entries: the benchmark of entries, beside that of bad samples."""
