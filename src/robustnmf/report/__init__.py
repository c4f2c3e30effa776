"""Write the results of a fit: tables, a model, and a page with pictures."""

FILES = ("basis.csv", "codes.csv", "samples.csv", "model.rnmf", "report.html", "run.json")
"""Files of a fit."""
