"""Doors: they translate, they do not decide."""
