"""Words every room uses: ids, clock, scope, tokens, text, log."""
