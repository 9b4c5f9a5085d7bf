"""What a run leaves on disk, and how it is read back: nothing lost, nothing executed."""

from epicortex.storage.folder import RunFolder, RunInfo
from epicortex.storage.lines import NetworkLine

__all__ = ["NetworkLine", "RunFolder", "RunInfo"]
