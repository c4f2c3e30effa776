"""How the methods bear spoiled samples: the contamination benchmark."""
