"""Find and keep what people decided in their sessions."""
