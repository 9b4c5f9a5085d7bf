"""What a run leaves on disk, and how it is read back: nothing lost, nothing executed."""

from epicortex.storage.folder import RunFolder, RunInfo
from epicortex.storage.lines import HistoryLine, NetworkLine

__all__ = ["HistoryLine", "NetworkLine", "RunFolder", "RunInfo"]
