"""Files that appear whole or not at all: archives of arrays, CSV tables, HTML pages."""
