"""Injections at four points of an agent's work: few, on strong evidence."""
