"""What is to be done: tasks with dependencies, claimed by one at a time, with the history of every
change.
"""
