"""A champion at its task, frame by frame: poles are drawn here, environments of gymnasium draw themselves.

The frames become a GIF, or an MP4 where imageio-ffmpeg is installed; where they go is left to others.
"""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from epicortex.errors import DataError
from epicortex.tasks.gym import PREFIX, Gym, environment
from epicortex.tasks.physics import Policy, State, World, moved
from epicortex.tasks.poles import Poles
from epicortex.tasks.task import Task

if TYPE_CHECKING:
    from PIL.Image import Image

_WIDTH, _HEIGHT, _GROUND = 480, 270, 220
_METRE: Final = 88
#: Frames a second; a step of the poles' world lasts half as long as a frame.
RATE: Final = 25
_INK, _PAPER, _LONG, _SHORT = "#1c2430", "#f6f5f1", "#c2410c", "#1567a8"


def frames(task: Task, policy: Policy, *, seconds: float, rng: np.random.Generator) -> Iterator[Image]:
    """What the champion does, for so many seconds or until it fails."""
    if isinstance(task, Poles):
        return _poles(task, policy, round(seconds * RATE))
    if isinstance(task, Gym):
        return _gym(task, policy, round(seconds * RATE), rng)
    raise DataError(f"there is nothing to be seen in the task {task.name}")


def _poles(task: Poles, policy: Policy, most: int) -> Iterator[Image]:
    policy.reset()
    state, force = task.start, 0.0
    for number in range(most):
        yield _cart(task.world, state, force, number / RATE)
        for _ in range(2):
            output = policy.act(task.world.observed(state))[0]
            force = task.world.force(output)
            state = moved(task.world, state, output)
        if task.world.fallen(state):
            yield _cart(task.world, state, force, (number + 1) / RATE)
            return


def _cart(world: World, state: State, force: float, seconds: float) -> Image:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (_WIDTH, _HEIGHT), _PAPER)
    draw = ImageDraw.Draw(picture)
    middle = _WIDTH / 2 + state[0] * _METRE
    ends = [_WIDTH / 2 + side * world.track * _METRE for side in (-1, 1)]
    draw.line([ends[0], _GROUND, ends[1], _GROUND], fill=_INK, width=2)
    for end in ends:
        draw.line([end, _GROUND - 8, end, _GROUND + 8], fill=_INK, width=2)
    draw.rectangle([middle - 22, _GROUND - 18, middle + 22, _GROUND - 4], fill=_INK)
    for pole, colour in zip(range(world.poles), (_LONG, _SHORT), strict=False):
        angle, length = state[2 + 2 * pole], 2 * world.lengths[pole] * _METRE * 1.6
        tip = middle + length * math.sin(angle), _GROUND - 18 - length * math.cos(angle)
        draw.line([middle, _GROUND - 18, *tip], fill=colour, width=5 if pole else 4)
    draw.line([middle, _GROUND + 24, middle + 6 * force, _GROUND + 24], fill=_LONG, width=4)
    draw.text((10, 8), f"{seconds:5.2f} s", fill=_INK)
    draw.text((10, 22), f"force {force:+6.2f} N", fill=_INK)
    return picture


def _gym(task: Gym, policy: Policy, most: int, rng: np.random.Generator) -> Iterator[Image]:
    from PIL import Image

    world = environment(task.name.removeprefix(PREFIX), "rgb_array")
    policy.reset()
    observation, _ = world.reset(seed=int(rng.integers(2**31)))
    for _ in range(most):
        yield Image.fromarray(np.asarray(world.render(), np.uint8))
        observation, _, ended, cut, _ = world.step(task.action(policy.act(observation.tolist())))
        if ended or cut:
            return


def gif(pictures: list[Image]) -> bytes:
    """The frames as an animation that plays anywhere, over and over."""
    content = io.BytesIO()
    first, *others = (one.quantize(32) for one in pictures)
    first.save(
        content,
        "GIF",
        save_all=True,
        append_images=others,
        duration=round(1000 / RATE),
        loop=0,
        optimize=True,
    )
    return content.getvalue()


def mp4(pictures: list[Image]) -> bytes:
    """The frames as a video (H.264) that browsers play; the encoder is a library's, and writes a file."""
    try:
        import imageio_ffmpeg
    except ImportError:
        raise DataError(
            "an MP4 needs imageio-ffmpeg, which is not installed: pip install 'epicortex[film]'"
        ) from None
    with tempfile.TemporaryDirectory(prefix="epicortex-") as folder:
        path = Path(folder, "film.mp4")
        writer = imageio_ffmpeg.write_frames(
            str(path),
            pictures[0].size,
            fps=RATE,
            macro_block_size=2,
            codec="libx264",
            ffmpeg_log_level="error",
            output_params=["-movflags", "+faststart"],
        )
        writer.send(None)
        try:
            for picture in pictures:
                writer.send(np.ascontiguousarray(picture.convert("RGB")))
        except OSError as error:
            raise DataError(f"the MP4 cannot be encoded: {' '.join(str(error).split()):.300}") from None
        finally:
            writer.close()
        return path.read_bytes()
