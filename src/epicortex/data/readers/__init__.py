"""Readers, one for each format that data comes in."""
