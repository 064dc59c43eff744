"""The door for hosts that speak the Model Context Protocol: `smara mcp`."""
