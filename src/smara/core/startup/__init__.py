"""Compile classes and patterns when they are first used."""
