"""Remember which requests were done."""
