//! The table of wheels: names, versions, sha256 and sizes of the files on PyPI.
//!
//! The x86-64 files are the ones that every test of this workspace runs with. The 64-bit Arm files have the same
//! layout; their hashes are recorded so that a Grace host can be served by the same table.

use super::{File, Platform, Wheel};

const fn any(sha256: &'static str, bytes: u64) -> File {
    File { platform: None, sha256, bytes }
}

const fn x86_64(sha256: &'static str, bytes: u64) -> File {
    File { platform: Some(Platform::LinuxX86_64), sha256, bytes }
}

const fn aarch64(sha256: &'static str, bytes: u64) -> File {
    File { platform: Some(Platform::LinuxAarch64), sha256, bytes }
}

pub(super) const CUTLASS: Wheel = Wheel {
    name: "nvidia-cutlass",
    version: "4.2.0.0",
    files: &[any("f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6", 6_440_597)],
    keep: &[
        ("cutlass_library/source/include/", "include/"),
        ("cutlass_library/source/tools/util/include/", "tools/util/include/"),
        ("pycute/", "python/pycute/"),
        ("nvidia_cutlass-4.2.0.0.dist-info/licenses/", "licenses/cutlass/"),
    ],
};

pub(super) const NVCC: Wheel = Wheel {
    name: "nvidia-cuda-nvcc",
    version: "13.0.88",
    files: &[
        x86_64("56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03", 37_384_532),
        aarch64("c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f", 32_455_430),
    ],
    keep: &[
        ("nvidia/cu13/bin/", "bin/"),
        ("nvidia/cu13/include/", "include/"),
        ("nvidia_cuda_nvcc-13.0.88.dist-info/licenses/", "licenses/nvcc/"),
    ],
};

pub(super) const CRT: Wheel = Wheel {
    name: "nvidia-cuda-crt",
    version: "13.0.88",
    files: &[
        x86_64("2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4", 134_086),
        aarch64("ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003", 134_086),
    ],
    keep: &[("nvidia/cu13/include/", "include/"), ("nvidia_cuda_crt-13.0.88.dist-info/licenses/", "licenses/crt/")],
};

/// Without `lib/libnvvm.so`: nvcc starts cicc and loads no library.
pub(super) const NVVM: Wheel = Wheel {
    name: "nvidia-nvvm",
    version: "13.0.88",
    files: &[
        x86_64("c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0", 61_601_415),
        aarch64("c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1", 59_234_185),
    ],
    keep: &[("nvidia/cu13/nvvm/", "nvvm/"), ("nvidia_nvvm-13.0.88.dist-info/licenses/", "licenses/nvvm/")],
};

pub(super) const RUNTIME: Wheel = Wheel {
    name: "nvidia-cuda-runtime",
    version: "13.0.96",
    files: &[
        x86_64("7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548", 2_243_632),
        aarch64("ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55", 2_261_060),
    ],
    keep: &[
        ("nvidia/cu13/include/", "include/"),
        ("nvidia/cu13/lib/", "lib/"),
        ("nvidia_cuda_runtime-13.0.96.dist-info/licenses/", "licenses/runtime/"),
    ],
};

pub(super) const CCCL: Wheel = Wheel {
    name: "nvidia-cuda-cccl",
    version: "13.0.85",
    files: &[
        x86_64("e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649", 3_120_526),
        aarch64("6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c", 3_120_528),
    ],
    keep: &[("nvidia/cu13/include/", "include/"), ("nvidia_cuda_cccl-13.0.85.dist-info/licenses/", "licenses/cccl/")],
};

pub(super) const CUOBJDUMP: Wheel = Wheel {
    name: "nvidia-cuda-cuobjdump",
    version: "13.2.51",
    files: &[
        x86_64("95c69d3ddf0c2c1f535ec44c3433a66aeee19f588d9d22f73356e20b25f12b50", 343_823),
        aarch64("f2f3bc433a91f4ff910841f2de8bc9e7ce92556602d6e363054fe2bb62a587c4", 318_981),
    ],
    keep: &[("nvidia/cu13/bin/", "bin/"), ("nvidia_cuda_cuobjdump-13.2.51.dist-info/licenses/", "licenses/cuobjdump/")],
};

pub(super) const NVDISASM: Wheel = Wheel {
    name: "nvidia-cuda-nvdisasm",
    version: "13.2.51",
    files: &[
        x86_64("5a7acf77c55d6d2911ed6155d4d5bc156ffadf9df7a68a89b0c1155f4b13688c", 4_418_606),
        aarch64("483c8f652c1ca006135584b4faf7ea1d2bafe4c40ec1c9ef57a04c6acfbdd57f", 4_338_166),
    ],
    keep: &[("nvidia/cu13/bin/", "bin/"), ("nvidia_cuda_nvdisasm-13.2.51.dist-info/licenses/", "licenses/nvdisasm/")],
};

pub(super) const LIBCLANG: Wheel = Wheel {
    name: "libclang",
    version: "18.1.1",
    files: &[
        x86_64("c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b", 24_515_943),
        aarch64("54dda940a4a0491a9d1532bf071ea3ef26e6dbaf03b5000ed94dd7174e8f9592", 23_784_972),
    ],
    keep: &[
        ("libclang-18.1.1.data/platlib/clang/native/", "lib/"),
        ("libclang-18.1.1.dist-info/LICENSE.TXT", "licenses/libclang/LICENSE.TXT"),
    ],
};
