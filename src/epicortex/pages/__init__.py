"""What `report` and `paper` share: plots, tables, the writing of figures, and pages that need nothing else.

What a page says is left to them.
"""
