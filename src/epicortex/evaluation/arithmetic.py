"""Whatever alters torch's arithmetic, fixed while a network trains, and given back as it was.

A result then depends on the job alone: not on the caller's settings, nor on the process it runs in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def fixed_arithmetic(device: torch.device) -> Iterator[None]:
    """One thread, denormals flushed, plain float32, gradients as in a fresh interpreter."""
    threads = torch.get_num_threads()
    flushed = _flushes_denormals()
    dtype = torch.get_default_dtype()
    precision = torch.get_float32_matmul_precision()
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, threads)
        stack.callback(torch.set_flush_denormal, flushed)
        stack.callback(torch.set_default_dtype, dtype)
        stack.callback(torch.set_float32_matmul_precision, precision)
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        torch.set_default_dtype(torch.float32)
        torch.set_float32_matmul_precision("highest")
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autocast(device.type, enabled=False))
        if device.type == "cuda":
            stack.enter_context(
                torch.backends.cudnn.flags(
                    enabled=True, benchmark=False, deterministic=True, allow_tf32=False
                )
            )
        if torch.are_deterministic_algorithms_enabled():
            # asked first, since setting it imports torch's compiler
            warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
            stack.callback(torch.use_deterministic_algorithms, True, warn_only=warn_only)
            torch.use_deterministic_algorithms(False)
        if not torch.backends.mkldnn.enabled:
            stack.callback(setattr, torch.backends.mkldnn, "enabled", False)
            torch.backends.mkldnn.enabled = True  # type: ignore[assignment]
        yield


def _flushes_denormals() -> bool:
    """Whether this thread flushes denormals; torch can set that but not tell."""
    smallest = float.fromhex("0x1p-1074")
    return smallest * 1.0 == 0.0
