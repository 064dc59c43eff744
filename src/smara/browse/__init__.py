"""Show people what is remembered: counted, mapped, explained and answered."""
