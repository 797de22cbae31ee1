"""Row sums of NumPy's or PyTorch's tensors by a kernel of cutemplate, through DLPack and ctypes.

    cargo build --release --package dlpack_sums
    python3 examples/dlpack_sums/sums.py target/release/libdlpack_sums.so

Where PyTorch has a GPU, its tensors stay there, and the work is in its current stream.
"""

import ctypes
import sys


class Sums:
    def __init__(self, library):
        # Whoever lent a tensor may need the interpreter's lock to take it back: PyDLL keeps it.
        self.lib = ctypes.PyDLL(library)
        self.lib.dlpack_row_sums.restype = ctypes.c_void_p
        self.lib.dlpack_row_sums.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_void_p]
        self.lib.dlpack_sums_free.argtypes = [ctypes.c_void_p]

    def __call__(self, a, y, alpha=1.0):
        """Writes alpha times the sum of each row of a into y."""
        stream = stream_of(a)
        lent = [lend(tensor, stream) for tensor in (a, y)]
        message = self.lib.dlpack_row_sums(lent[0], lent[1], alpha, stream)
        if message:
            text = ctypes.string_at(message).decode()
            self.lib.dlpack_sums_free(message)
            raise ValueError(text)


def stream_of(tensor):
    """The handle of PyTorch's current stream, where the tensor is on a GPU."""
    if not getattr(tensor, "is_cuda", False):
        return None
    import torch

    return torch.cuda.current_stream(tensor.device).cuda_stream


def lend(tensor, stream):
    """The address of a DLManagedTensor, which the callee gives back."""
    # DLPack's name of CUDA's default stream, whose handle is 0, is 1.
    capsule = tensor.__dlpack__() if stream is None else tensor.__dlpack__(stream=stream or 1)
    get, rename = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_SetName
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = get(capsule, b"dltensor")
    # The capsule no longer owns it.
    rename(capsule, USED)
    return address


# A capsule keeps the address of its name.
USED = b"used_dltensor"


def main(library):
    sums = Sums(library)
    try:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        a = torch.arange(12000, dtype=torch.float32, device=device).reshape(12, 1000)[:, :999]
        y = torch.empty(12, dtype=torch.float32, device=device)
        expected, close = a.sum(1) * 0.5, torch.allclose
    except ImportError:
        import numpy

        device = "numpy"
        a = numpy.arange(12000, dtype=numpy.float32).reshape(12, 1000)[:, :999]
        y = numpy.empty(12, dtype=numpy.float32)
        expected, close = a.sum(1) * numpy.float32(0.5), numpy.allclose
    sums(a, y, 0.5)
    assert close(y, expected), (y, expected)
    try:
        sums(a[:, ::2], y)
    except ValueError as refused:
        print(refused)
    else:
        raise AssertionError("rows with gaps between their elements were taken")
    print(f"12 rows of 999 on {device}: right")


if __name__ == "__main__":
    main(*sys.argv[1:])
