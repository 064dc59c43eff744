"""Make and compare vectors of everything that can be found.

A vector belongs to a row and a model. All vectors of one model are a *space*; two spaces are
never compared. Writing never waits for a vector: what was written is found by its words at once,
and by its meaning a moment later.
"""
