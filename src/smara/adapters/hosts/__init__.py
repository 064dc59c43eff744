"""Receive the events of agent hosts, and answer them."""
