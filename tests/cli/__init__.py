"""Tests of the command line, most of them on the real command in a process of its own."""
