"""The paper's experiments: planned, run, resumed, set beside the published figures, and judged.

Every run is an ordinary run folder. All that is reported is read back from these folders, so that whoever has
them can make the tables again.
"""
