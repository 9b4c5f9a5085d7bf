"""What a run leaves on disk, and how it is read back: nothing lost, nothing executed."""

from epicortex.storage.champion import Champion, Facts
from epicortex.storage.folder import RunFolder, RunInfo
from epicortex.storage.lines import HistoryLine, NetworkLine
from epicortex.storage.reading import RunRecord, load_champion, read_run

__all__ = [
    "Champion",
    "Facts",
    "HistoryLine",
    "NetworkLine",
    "RunFolder",
    "RunInfo",
    "RunRecord",
    "load_champion",
    "read_run",
]
