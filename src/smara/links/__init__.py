"""Where tasks and messages meet: the active task of a thread, and messages linked to tasks."""
