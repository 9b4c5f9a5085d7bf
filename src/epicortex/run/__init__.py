"""A whole run: evolving and resuming, generation after generation, and reading one back."""
