"""The ecosystem, a file a section of the paper: pure functions over a frozen state."""
