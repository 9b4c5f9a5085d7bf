"""One self-contained HTML page about a run: what happened, in words, plots and pictures.

Everything is read from the run's folder through `storage`, and escaped; the page loads nothing. The champion
is shown on its test set where the data is found.
"""

from epicortex.report.page import write

__all__ = ["write"]
