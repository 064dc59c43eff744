"""Records of a project's commits, and the reasons behind its present lines."""
