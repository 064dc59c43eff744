"""Learn memories from the habits that agents' events show."""
