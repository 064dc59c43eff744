"""Parse one file: languages, definitions, references, chunks."""
