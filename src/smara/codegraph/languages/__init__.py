"""Keep the languages: one module each, its query beside it.

A module lists its specs in ``LANGUAGES``; `smara.codegraph.language` finds it by listing this
folder. See docs/howto/add-a-language.md.
"""
