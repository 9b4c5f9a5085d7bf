"""Draws the picture of docs/native.md, a few rectangles: `python docs/pictures/native.py`."""

from __future__ import annotations

from pathlib import Path

IMAGES = Path(__file__).parent.parent / "images"
BLUE, RED, GREEN, GREY, INK = "#2b6cb0", "#c53030", "#2f855a", "#a0aec0", "#1a202c"
CELL = 22


def rectangle(x: float, y: float, wide: float, high: float, fill: str, opacity: float = 1.0) -> str:
    """One box with a thin edge."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" fill="{fill}" '
        f'fill-opacity="{opacity:g}" stroke="{GREY}" stroke-width="0.7"/>'
    )


def text(x: float, y: float, words: str, colour: str = INK, size: int = 12) -> str:
    """A line of words."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}">{words}</text>'


def image(x: float, y: float) -> list[str]:
    """The padded input: a border of zeros, a tap's row of positions, and the tile that they go into."""
    parts = [text(x, y - 12, "one channel of the input, zeros around it; every cell is 16 samples")]
    for row in range(8):
        for column in range(10):
            border = row in (0, 7) or column in (0, 9)
            parts.append(
                rectangle(x + column * CELL, y + row * CELL, CELL, CELL, "white", 1.0)
                if border
                else rectangle(x + column * CELL, y + row * CELL, CELL, CELL, GREY, 0.25)
            )
    parts += [rectangle(x + (3 + p) * CELL, y + 2 * CELL, CELL, CELL, BLUE, 0.75) for p in range(4)]
    parts.append(text(x, y + 8 * CELL + 18, "tap (−1, 0): P = 4 neighbouring positions", BLUE))
    return parts


def kernel(x: float, y: float, shape: tuple[int, int], number: int) -> list[str]:
    """A kernel in its own true shape, the tap of the picture in red."""
    high, wide = shape
    left, top = x + (3 - wide) * CELL / 2, y + (3 - high) * CELL / 2
    cells = [
        rectangle(
            left + column * CELL,
            top + row * CELL,
            CELL,
            CELL,
            RED,
            0.75 if row == 0 and column == wide // 2 else 0.2,
        )
        for row in range(high)
        for column in range(wide)
    ]
    return [*cells, text(x + CELL, y + 3 * CELL + 16, f"w{number}", RED)]


def accumulators(x: float, y: float) -> list[str]:
    """P × G registers."""
    parts = [text(x, y - 12, "registers: P × G sums")]
    for map_number in range(3):
        for position in range(4):
            parts.append(rectangle(x + position * 34, y + map_number * 34, 34, 34, GREEN, 0.35))
            name = f"{map_number + 1},{position + 1}"
            parts.append(text(x + position * 34 + 8, y + map_number * 34 + 21, name))
    parts.append(text(x, y + 3 * 34 + 18, "each: sum + w · x, for one tap after the other", GREEN))
    return parts


def main() -> None:
    """Write docs/images/native-tile.svg."""
    parts = [*image(10, 40)]
    parts.append(text(270, 28, "G = 3 kernels of one shape"))
    for number in range(3):
        parts += kernel(270, 40 + number * 92, (3, 1), number + 1)
    parts.append(text(380, 130, "→", size=28))
    parts += accumulators(430, 70)
    width, height = 720, 330
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" role="img" '
        'aria-label="A tile: one tap of three kernels times four positions of sixteen samples">'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )
    (IMAGES / "native-tile.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
