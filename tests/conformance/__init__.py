"""Run the frameworks' own tests against our adapters; see ``docs/howto/add-a-framework.md``."""
