"""Chat models behind one small protocol, with deadlines, retries and a budget."""
