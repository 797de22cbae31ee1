"""Runs the programs of all opcode forms on a GPU: python3 ptx_forms.py FOLDER

The folder is what `exec_ptx` wrote for PTX_EXEC_FORMS, and the cubin of its forms.ptx:
`ptxas -arch=sm_90a -o forms.cubin forms.ptx`. Writes results.bin there. Needs the driver, and nothing else.
"""

import ctypes
import pathlib
import sys

LANES = 2048
folder = pathlib.Path(sys.argv[1])
cuda = ctypes.CDLL("libcuda.so.1")


def check(result, what):
    if result != 0:
        raise SystemExit(f"{what}: CUDA error {result}")


def allocate(size):
    address = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), "allocation")
    return address


device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cuInit(0), "driver")
check(cuda.cuDeviceGet(ctypes.byref(device), 0), "device")
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "context")
check(cuda.cuCtxSetCurrent(context), "context")
cubin = (folder / "forms.cubin").read_bytes()
check(cuda.cuModuleLoadData(ctypes.byref(module), cubin), "cubin")

out = allocate(LANES * 8 * 8)
inputs, results = {}, bytearray()
for line in (folder / "forms.txt").read_text().splitlines():
    entry, kind, count, name = line.split(" ", 3)
    if kind not in inputs:
        data = (folder / f"in_{kind}.bin").read_bytes()
        inputs[kind] = allocate(len(data))
        check(cuda.cuMemcpyHtoD_v2(inputs[kind], data, ctypes.c_size_t(len(data))), name)
    function = ctypes.c_void_p()
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, entry.encode()), name)
    params = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(inputs[kind]))
    check(cuda.cuLaunchKernel(function, LANES // 128, 1, 1, 128, 1, 1, 0, None, params, None), name)
    check(cuda.cuCtxSynchronize(), name)
    size = LANES * 8 * int(count)
    buffer = ctypes.create_string_buffer(size)
    check(cuda.cuMemcpyDtoH_v2(buffer, out, ctypes.c_size_t(size)), name)
    results += buffer.raw
(folder / "results.bin").write_bytes(results)
