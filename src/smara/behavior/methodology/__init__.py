"""Methodologies: how a way of working divides its work, and what is handed on from one stage to the
next.
"""
