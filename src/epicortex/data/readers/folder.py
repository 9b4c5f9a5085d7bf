"""A folder of pictures as a `DataSet`: a subfolder for each class, perhaps below train/, val/ and test/.

Pictures are decoded by several threads into an unnamed temporary file, so that memory stays flat and nothing
is left behind, whatever happens.
"""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, TypeVar

import numpy as np

from epicortex.data import answers
from epicortex.data.assemble import Part, assemble
from epicortex.data.dataset import DEEP, MAX_CLASSES, DataSet
from epicortex.data.options import DataOptions, Progress
from epicortex.data.readers.pictures import Look, Source, depth, look, read_image
from epicortex.data.scanning import Listing
from epicortex.data.wording import listing
from epicortex.errors import DataError

_BATCH = 64
#: The sides that pictures get by themselves: never smaller than this for want of time, nor larger.
_SIDES = (64, 224)
T = TypeVar("T")
R = TypeVar("R")


def from_folder(
    listing_: Listing, *, options: DataOptions, spool: Path | None, progress: Progress | None = None
) -> DataSet:
    """Decode the listed pictures; `spool` is the folder for the temporary file."""
    name = listing_.name or listing_.root.resolve().name or "images"
    if listing_.task == "classes" and options.task not in ("auto", "classes"):
        listing_.settle(options.task)  # the names of folders
    notes = list(listing_.notes)
    with warnings.catch_warnings():
        # Pillow only warns of what is refused here anyway.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        workers = options.decode_workers or os.cpu_count() or 1
        with ThreadPoolExecutor(workers) as pool:
            reader = _Reader(listing_, options, spool, pool, workers, progress)
            parts, classes = reader.run()
    notes += reader.notes
    return assemble(
        name,
        parts,
        classes=classes,
        divisor=255.0,
        options=options,
        notes=notes,
        gather=reader.gather,
        bits=reader.bits,
        kind=listing_.kind,
        task=listing_.task,
    )


class _Reader:
    """The two passes over the pictures: headers first, to settle the shape, then the pixels."""

    def __init__(
        self,
        listing_: Listing,
        options: DataOptions,
        spool: Path | None,
        pool: ThreadPoolExecutor,
        workers: int,
        progress: Progress | None,
    ) -> None:
        self.listing = listing_
        self.options = options
        self.spool = spool
        self.pool = pool
        self.workers = workers
        self.progress = progress
        self.notes: list[str] = []
        self.bad: list[str] = []
        self.bits = DEEP

    def run(self) -> tuple[dict[str, Part], tuple[str, ...]]:
        looks = dict(
            zip(self.listing.paths(), self.over(self.listing.paths(), self.peek, "looking at"), strict=True)
        )
        seen = [one for one in looks.values() if one is not None]
        if not seen and len(looks) > 1:
            raise DataError(
                f"none of the {len(looks)} pictures in {self.listing.root} opens: {listing(self.bad, 2)}"
            )
        self.refuse_bad(len(looks))
        shape = self.settle(seen)
        files = {
            part: [(path, label) for path, label in files if looks[path] is not None]
            for part, files in self.listing.files.items()
        }
        if self.listing.task != "classes":
            return self.finish(files, looks, shape, self.listing.outputs)
        classes = tuple(sorted({label for _, label in files["train"]}))
        if lost := sorted({label for _, label in self.listing.files["train"]} - set(classes)):
            raise DataError(f"{self.listing.root}: no picture of the class {listing(lost)} opens")
        if len(classes) > MAX_CLASSES:
            raise DataError(
                f"{self.listing.root} has {len(classes)} classes; at most {MAX_CLASSES} are possible"
            )
        self.check_classes(files, classes)
        return self.finish(files, looks, shape, classes)

    def finish(
        self,
        files: dict[str, list[tuple[Source, str]]],
        looks: Mapping[Source, Look | None],
        shape: tuple[int, int, int],
        classes: tuple[str, ...],
    ) -> tuple[dict[str, Part], tuple[str, ...]]:
        parts = {part: self.decode(part, files[part], shape, classes) for part in files}
        self.refuse_bad(len(looks))
        self.report_bad(len(looks))
        return parts, classes

    def settle(self, looks: list[Look]) -> tuple[int, int, int]:
        """The shape that all pictures get, and what to tell about it."""
        gray = self.options.channels == "gray" or (
            self.options.channels == "auto" and all(one.gray for one in looks)
        )
        sizes = Counter((one.height, one.width) for one in looks)
        size = _usual(sizes)
        height, width = self.options.image_size or self.within(size)
        channels = 1 if gray else 3
        resized = sum(count for size, count in sizes.items() if size != (height, width))
        if resized:
            why = self.why(size, (height, width))
            self.notes.append(f"{resized} of {len(looks)} images were resized to {height} × {width} ({why})")
        converted = sum(one.gray != gray for one in looks)
        if converted:
            self.notes.append(
                f"{converted} of {len(looks)} images were converted to {'gray' if gray else 'RGB'}"
            )
        pages = sum(one.pages for one in looks)
        if pages:
            self.notes.append(
                f"{pages} of {len(looks)} files hold several pictures; the first of each is read"
            )
        self.settle_depth(looks)
        total = len(looks) * channels * height * width
        if total > self.options.max_bytes:
            raise DataError(
                f"{self.listing.root}: {len(looks)} images of {height} × {width} are {total >> 20} MB, but "
                f"data.max_bytes is {self.options.max_bytes >> 20} MB; give a smaller --data.image-size"
            )
        return channels, height, width

    def within(self, size: tuple[int, int]) -> tuple[int, int]:
        """A size made smaller, if need be, so that a run gets somewhere with so many pictures."""
        side = self.options.max_side
        if side is None:
            pixels = self.options.total_pixels / max(1, len(self.listing.files["train"]))
            side = round(max(size) * math.sqrt(pixels / (size[0] * size[1])))
            side = min(_SIDES[1], max(_SIDES[0], side))
        scale = min(1.0, side / max(size))
        return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))

    def why(self, size: tuple[int, int], made: tuple[int, int]) -> str:
        """Why pictures of a usual size get another."""
        if self.options.image_size:
            return "as asked"
        if size == made or self.options.max_side:
            return "--data.image-size sets another size"
        count = len(self.listing.files["train"])
        return (
            f"{count} of {size[0]} × {size[1]} would take longer; "
            f"--data.image-size {size[0]},{size[1]} keeps their size"
        )

    def settle_depth(self, looks: list[Look]) -> None:
        """How many bits the pictures of more than 8 bits use, all of them alike."""
        peaks = [one.peak for one in looks if one.peak]
        if peaks:
            self.bits = depth(max(peaks))
            self.notes.append(
                f"{len(peaks)} of {len(looks)} images have more than 8 bits a pixel and reach {max(peaks)}: "
                f"the highest 8 of {self.bits} bits are read"
            )

    def decode(
        self,
        part: str,
        files: list[tuple[Source, str]],
        shape: tuple[int, int, int],
        classes: tuple[str, ...],
    ) -> Part:
        labels: list[str] = []
        names: list[str] = []
        groups: list[str] = []
        with self.scratch() as out:
            pixels = self.over(
                [path for path, _ in files], lambda path: self.pixels(path, shape), f"reading {part}"
            )
            for (path, label), row in zip(files, pixels, strict=True):
                if row is None:
                    continue
                _write(out, row)
                labels.append(label)
                names.append(self.listing.call(path))
                groups.append(self.listing.groups.get(path, ""))
            mapped = _mapped(out, len(labels), shape)
            grouped = np.array(groups, np.str_) if self.listing.groups else None
            return Part(mapped, self.answers(labels, classes), names, grouped)

    def answers(self, labels: Sequence[str], classes: tuple[str, ...]) -> np.ndarray:
        """Labels as an array."""
        task = self.listing.task
        if task != "classes":
            return answers.encoded(labels, task, classes, f"{self.listing.root}: the label")
        number = {label: index for index, label in enumerate(classes)}
        return np.array([number[label] for label in labels], np.int64)

    def gather(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The rows in a temporary file of their own, since memory may not hold them."""
        with self.scratch() as out:
            for start in range(0, len(rows), _BATCH):
                _write(out, np.ascontiguousarray(x[rows[start : start + _BATCH]]))
            return _mapped(out, len(rows), x.shape[1:])

    def scratch(self) -> IO[bytes]:
        try:
            return tempfile.TemporaryFile(dir=self.spool)
        except OSError as error:
            raise DataError(f"no temporary file can be made in {self.spool}: {error.strerror}") from None

    def peek(self, path: Source) -> Look | None:
        return self.attempt(lambda: look(path, self.options.max_pixels))

    def pixels(self, path: Source, shape: tuple[int, int, int]) -> np.ndarray | None:
        return self.attempt(lambda: read_image(path, shape, self.options.max_pixels, bits=self.bits))

    def attempt(self, do: Callable[[], T]) -> T | None:
        try:
            return do()
        except DataError as error:
            self.bad.append(str(error))
            return None

    def over(self, paths: Sequence[Source], work: Callable[[Source], T], what: str) -> Iterator[T]:
        """`work` on every path by all threads; results in order, few of them waiting at a time."""
        batches = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
        done = 0
        depth = 2 * self.workers
        for results in _ahead(self.pool, lambda batch: [work(path) for path in batch], batches, depth):
            yield from results
            done += len(results)
            if self.progress:
                self.progress(what, done, len(paths))

    def check_classes(self, files: dict[str, list[tuple[Source, str]]], classes: tuple[str, ...]) -> None:
        for part, members in files.items():
            strange = sorted({label for _, label in members} - set(classes))
            if strange:
                raise DataError(
                    f"{self.listing.root}: {part}/ has the class {listing(strange)}, train/ has not"
                )

    def refuse_bad(self, total: int) -> None:
        if self.bad and self.options.unreadable == "refuse":
            few = "" if len(self.bad) == 1 else f"{len(self.bad)} of {total} pictures do not open: "
            raise DataError(
                f"{few}{listing(sorted(self.bad), most=20)}; --data.unreadable skip leaves such pictures out"
            )

    def report_bad(self, total: int) -> None:
        if self.bad:
            self.notes.append(
                f"{len(self.bad)} of {total} pictures were left out: {listing(sorted(self.bad), most=20)}"
            )


def _usual(sizes: Counter[tuple[int, int]]) -> tuple[int, int]:
    """The size most pictures have, or the median where none is common."""
    size, count = max(sizes.items(), key=lambda item: (item[1], -item[0][0] * item[0][1], item[0]))
    if count * 2 < sizes.total():
        return _median(sizes, 0), _median(sizes, 1)
    return size


def _median(sizes: Counter[tuple[int, int]], axis: int) -> int:
    ordered = sorted(Counter(size[axis] for size in sizes.elements()).elements())
    return ordered[len(ordered) // 2]


def _ahead(
    pool: ThreadPoolExecutor, work: Callable[[T], list[R]], items: Sequence[T], depth: int
) -> Iterator[list[R]]:
    """Results in order, with at most `depth` of them waiting to be taken."""
    waiting: deque[Future[list[R]]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > depth:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _write(out: IO[bytes], rows: np.ndarray) -> None:
    try:
        out.write(rows.data)
    except OSError as error:
        raise DataError(f"the prepared pictures cannot be stored: {error.strerror or error}") from None


def _mapped(out: IO[bytes], count: int, shape: tuple[int, ...]) -> np.ndarray:
    out.flush()
    if count == 0:
        return np.empty((0, *shape), np.uint8)
    return np.memmap(out, dtype=np.uint8, mode="r", shape=(count, *shape))
