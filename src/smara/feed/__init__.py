"""Follow what happens in a project."""
