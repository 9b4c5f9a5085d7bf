"""The page's colours: everything that is read or told apart by colour stands out enough, light and dark."""

from __future__ import annotations

import re
from importlib import resources

import pytest

TEXT, GRAPHICS = 4.5, 3.0
"""The least contrast that WCAG 2 asks for, of text and of graphics."""


def colours(theme: str) -> dict[str, str]:
    sheet = resources.files("epicortex.pages").joinpath("assets", f"{theme}.css").read_text("utf-8")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", sheet))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def mixed(one: str, other: str, share: float) -> str:
    pairs = [(int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out(theme: str) -> None:
    known = colours(theme)
    for ground in ("page", "card"):
        for ink in ("ink", "soft", "link"):
            assert contrast(known[ink], known[ground]) >= TEXT, (ink, ground)
        for line in ("best", "mean", "offspring", "good", "bad", "focus", "accent"):
            assert contrast(known[line], known[ground]) >= GRAPHICS, (line, ground)
    assert contrast(known["on-accent"], known["accent"]) >= TEXT
    # The numbers of the confusion matrix stand on cells of up to these strengths.
    assert contrast(known["ink"], mixed(known["bad"], known["cell"], 0.6)) >= TEXT
    assert contrast(known["ink"], mixed(known["mean"], known["cell"], 0.45)) >= TEXT


def test_light_and_dark_name_the_same_colours() -> None:
    assert colours("light").keys() == colours("dark").keys()
    style = resources.files("epicortex.pages").joinpath("assets", "page.css").read_text("utf-8")
    used = set(re.findall(r"var\(--([\w-]+)\)", style))
    numbers = {"height", "s", "value", "low", "high", "baseline", "share"}
    assert used <= {*colours("light"), *numbers}
