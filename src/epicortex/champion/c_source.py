"""A champion as plain C99: one file of code and constants, and a header. It needs nothing but the C library.

The code is generic and short; what differs from champion to champion are constants and a list of calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata, resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

from epicortex.champion import words
from epicortex.champion.file import Champion
from epicortex.champion.steps import Memory, Step, memory, steps, temperature
from epicortex.errors import ConfigError
from epicortex.measures import USUAL, figure, named
from epicortex.text import clean, shell

_WIDTH: Final = 100
_TEMPLATE: Final = "c_template.c"
#: Activations that the C library has itself, by its name for them.
_STANDARD: Final = {"tanh": "tanhf"}
_GIVES: Final = {"classes": "logits", "regression": "numbers, in their units", "multilabel": "logits"}
_SAYS: Final = {
    "classes": "names their classes",
    "regression": "says their numbers",
    "multilabel": "says the probability of each label",
}


@dataclass(frozen=True, slots=True)
class Size:
    """What a champion takes on a device, in bytes, and how much it multiplies."""

    flash: int
    """Its constants; the code, a few kilobytes, depends on the compiler."""
    ram: int
    """Everything that it writes to, but for a few words on the stack."""
    multiplications: int


@dataclass(frozen=True, slots=True)
class Source:
    """The texts of the two files."""

    code: str
    header: str
    size: Size


def source(champion: Champion, name: str) -> Source:
    """The C of a champion; `name` is that of its files, and begins all names in it, as in `name_logits`."""
    if not re.fullmatch(r"[\w.+ -]+", name):
        raise ConfigError(f"{name!r} cannot be the name of a file of C: use letters, digits, - and _")
    made = steps(champion)
    if not all(np.isfinite(step.weight).all() and np.isfinite(step.bias).all() for step in made):
        raise ConfigError("this champion has weights that are not finite (NaN or infinity): C has none such")
    plan, prefix = memory(made), identifier(name)
    size = _size(champion, made, plan)
    about = _about(champion, size, name)
    code = "\n".join(
        (
            f"/* {about}\n */",
            f'#include "{name}.h"',
            "",
            *_libraries(prefix),
            f"static float memory[{plan.size}];",
            *_constants(champion, made),
            *_functions(made),
            *_program(champion, made, plan, prefix),
            _main(champion, prefix),
        )
    )
    return Source(code, _header(champion, about, prefix), size)


def measure(champion: Champion) -> Size:
    """What a champion takes on a device, without writing its C."""
    made = steps(champion)
    return _size(champion, made, memory(made))


def identifier(name: str) -> str:
    """A name for C, made of any text.

    >>> identifier("model"), identifier("my-model 2"), identifier("3d"), identifier("__")
    ('model', 'my_model_2', 'm_3d', 'm')
    """
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return word if word[:1].isalpha() else f"m_{word}".rstrip("_")


def _size(champion: Champion, made: Sequence[Step], plan: Memory) -> Size:
    numbers = sum(len(step.weight) + len(step.bias) for step in made) + 2 * len(champion.scaling.mean)
    kernels = sum(2 * len(step.kernels) for step in made) * (2 if _kernel_type(made).endswith("short") else 1)
    names = sum(len(one.encode("utf-8", "replace")) + 1 for one in champion.classes)
    return Size(4 * numbers + kernels + names, 4 * plan.size, champion.outline.cost)


def _about(champion: Champion, size: Size, name: str) -> str:
    facts, outline, prefix = champion.facts, champion.outline, identifier(name)
    shape, white = outline.input_shape, champion.scaling.divisor
    size_text, file = " x ".join(map(str, shape)), shell([f"{name}.c"])
    order = {1: "in the order of the columns", 2: "channel by channel", 3: "channel by channel, row by row"}
    pixels = f", pixels from 0 (black) to {white:g} (white)" if len(shape) == 3 else ""
    usual, task = USUAL[facts.task], facts.task
    tested = ""
    if facts.test_accuracy is not None:
        # plain letters, for any compiler
        called = named(usual).replace("²", "2")
        tested = f", {figure(usual, facts.test_accuracy)} {called} on its test set"
    kind = f"{words.KINDS[task][:1].lower()}{words.KINDS[task][1:]}"
    lines = (
        f"{prefix}: {kind} {clean(facts.data)}{tested}.",
        f"Evolved and written by EpiCortex {metadata.version('epicortex')}; do not edit.",
        "",
        f"Flash            {size.flash:,} bytes of constants; the code comes on top",
        f"RAM              {size.ram:,} bytes, static; nothing is allocated",
        f"Multiplications  {size.multiplications:,} for a sample; {outline.parameters:,} parameters",
        f"Input            {size_text} raw values, {order[len(shape)]}{pixels}; scaled inside",
        f"Output           {len(champion.classes)} {_GIVES[task]}, "
        f"in the order of {prefix}_{words.OUTPUTS[task]}",
        "",
        f"As part of a program:  cc -std=c99 -O2 -c {file}",
        f"As a program:          cc -std=c99 -O2 -D{prefix.upper()}_MAIN {file} -lm -o {prefix}",
        f"which reads samples from its input, as numbers between white space, and {_SAYS[task]}.",
    )
    return "\n".join(f" * {_comment(line)}".rstrip() for line in lines).removeprefix(" * ")


def _comment(text: str) -> str:
    """A text that cannot end the comment that it stands in.

    >>> _comment("a */ b ??/ c")
    'a *  b ?_/ c'
    """
    return text.replace("*/", "* ").replace("/*", " *").replace("??", "?_").replace("\\", "_")


def _header(champion: Champion, about: str, prefix: str) -> str:
    large = prefix.upper()
    text = _template("header").replace("NAME", large).replace("name_", f"{prefix}_")
    inputs = int(np.prod(champion.outline.input_shape))
    sizes = f"#define {large}_INPUTS {inputs}\n#define {large}_OUTPUTS {len(champion.classes)}\n"
    functions = _filled(f"{champion.facts.task}_functions", prefix)
    text = text.replace("/* functions */\n", functions)
    return f"/* {about}\n */\n" + text.replace("/* sizes */\n", sizes)


def _libraries(prefix: str) -> Iterator[str]:
    yield "#include <limits.h>"
    yield "#include <math.h>"
    yield "#include <stddef.h>"
    yield f"#ifdef {prefix.upper()}_MAIN"
    yield "#include <stdio.h>"
    yield "#endif"
    yield ""


def _constants(champion: Champion, made: Sequence[Step]) -> Iterator[str]:
    scale, shift = champion.scaling.factors(2)
    if any(step.kernels for step in made):
        yield f"typedef {_kernel_type(made)} kernel_size;"
    yield from _array("float", "input_scale", scale.reshape(-1))
    yield from _array("float", "input_shift", shift.reshape(-1))
    for number, step in enumerate(made, 1):
        if step.kernels:
            yield from _array("kernel_size", f"kernels_{number}", np.array(step.kernels).reshape(-1))
        for name, numbers in (("weight", step.weight), ("bias", step.bias)):
            if len(numbers):
                yield from _array("float", f"{name}_{number}", numbers)
    most = max(max(len(step.weight), int(np.prod(step.below))) for step in made)
    yield f"typedef char int_is_wide_enough[INT_MAX >= {most} ? 1 : -1];"
    yield ""


def _kernel_type(made: Sequence[Step]) -> str:
    largest = max((size for step in made for kernel in step.kernels for size in kernel), default=0)
    return "unsigned char" if largest < 256 else "unsigned short"


def _array(kind: str, name: str, numbers: NDArray[np.generic]) -> Iterator[str]:
    yield f"static const {kind} {name}[{len(numbers)}] = {{"
    line = ""
    for number in numbers:
        text = _number(number) if kind == "float" else str(int(number))
        if len(line) + len(text) > _WIDTH:
            yield f"  {line}"
            line = ""
        line += f"{text},"
    yield f"  {line}"
    yield "};"


def _number(value: np.generic) -> str:
    """A float32 as C reads it back, bit for bit.

    >>> _number(np.float32(0.1)), _number(np.float32(-3)), _number(np.float32(1e-20))
    ('0.1f', '-3.0f', '1e-20f')
    """
    return f"{np.float32(value)!s}f"


def _functions(made: Sequence[Step]) -> Iterator[str]:
    """Only what this network needs: compilers warn of functions that nobody calls."""
    activations = {step.activation or "identity" for step in made if step.kind != "pool"} - set(_STANDARD)
    for name in ("scaling", *sorted(activations), *sorted({step.kind for step in made})):
        yield _template(name)


def _program(champion: Champion, made: Sequence[Step], plan: Memory, prefix: str) -> Iterator[str]:
    names, task = ",\n  ".join(map(_string, champion.classes)), champion.facts.task
    what, out = words.OUTPUTS[task], "numbers" if task == "regression" else "logits"
    call = "predict" if task == "regression" else "logits"
    yield f"const char *const {prefix}_{what}[{prefix.upper()}_OUTPUTS] = {{\n  {names}\n}};\n"
    yield f"void {prefix}_{call}(const float *values, float *{out})\n{{"
    channels, *rest = made[0].below
    yield f"  scale_input(values, {channels}, {int(np.prod(rest))}, memory);"
    for number, step in enumerate(made, 1):
        place = out if number == len(made) else _place(plan, number)
        yield f"  {_call(step, number, plan, place)}"
    yield "}\n"
    if task != "regression":
        answers = _filled(f"{task}_answers", prefix)
        yield answers.replace("TEMPERATURE", _number(np.float32(temperature(champion))))


def _call(step: Step, number: int, plan: Memory, out: str) -> str:
    below, weight = ", ".join(map(str, step.below)), f"weight_{number}" if len(step.weight) else "NULL"
    bias = f"bias_{number}" if len(step.bias) else "NULL"
    add = "NULL" if step.add is None else _place(plan, step.add)
    activation = step.activation or "identity"
    end, source = f"{add}, {_STANDARD.get(activation, activation)}, {out});", _place(plan, step.source)
    nodes, rows, columns = step.output
    if step.kind == "conv":
        down, right = step.stride
        return f"conv({source}, {below}, {weight}, {bias}, kernels_{number}, {nodes}, {down}, {right}, {end}"
    if step.kind == "full":
        return f"full({source}, {int(np.prod(step.below))}, {weight}, {bias}, {nodes}, {end}"
    if step.kind == "pool":
        return f"pool({source}, {below}, {rows}, {columns}, {_number(np.float32(step.factor))}, {out});"
    return f"each({source}, {nodes}, {rows * columns}, {weight}, {bias}, {end}"


def _place(plan: Memory, slot: int) -> str:
    offset = plan.offsets[slot]
    return f"memory + {offset}" if offset else "memory"


def _string(text: str) -> str:
    """A text as a literal of C, in UTF-8; all but plain letters are written as numbers.

    >>> _string("Zürich")
    '"Z\\\\303\\\\274rich"'
    """
    plain: Iterable[str] = (
        chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in " -_.") else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "replace")
    )
    return f'"{"".join(plain)}"'


def _main(champion: Champion, prefix: str) -> str:
    """The program for a first try."""
    answer = _filled(f"{champion.facts.task}_main", prefix).strip()
    return _filled("main", prefix).replace("/* answer */", answer)


def _filled(name: str, prefix: str) -> str:
    return _template(name).replace("NAME", prefix.upper()).replace("name_", f"{prefix}_")


def _template(name: str) -> str:
    """A piece of the C that is the same for all champions."""
    text = resources.files("epicortex.champion").joinpath(_TEMPLATE).read_text("utf-8")
    pieces = re.split(r"^/\* piece: (\w+) \*/\n", text, flags=re.MULTILINE)
    return f"{dict(zip(pieces[1::2], pieces[2::2], strict=True))[name].strip()}\n"
