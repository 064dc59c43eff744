"""Guide people in a terminal: where they stand, set-up, review and explanations.

The commands here read the screen's size and answer key by key; those of ``surfaces.cli`` print
one answer. Modules are imported by name, when their command is called.
"""
