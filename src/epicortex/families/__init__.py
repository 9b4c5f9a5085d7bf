"""Kinds of network. `family` holds the protocol; each kind has a folder of its own."""
