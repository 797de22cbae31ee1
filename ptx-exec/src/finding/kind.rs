//! The kinds of findings.

/// The kind of a finding. Each kind has one or more [`Rule`](super::Rule)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// An access outside the elements of all tensors, and outside all allocations and variables.
    OutOfBounds,
    /// An address that is not a multiple of the bytes of the access.
    Misaligned,
    /// A write to an input.
    WriteToInput,
    /// An uninitialised value is stored to global memory, or decides an address, a branch or an atomic.
    Uninitialized,
    /// A data race: two unordered accesses of one place, at least one of them a write.
    Race,
    /// A barrier that not all of its threads reach, or with a wrong count, or that is not initialised.
    BarrierMisuse,
    /// Asynchronous work that is not set up, waited for or ended as required.
    Asynchrony,
    /// A tensor map that does not fit its copy.
    TensorMap,
    /// Threads that wait for ever.
    Deadlock,
    /// The launch did not end within its limit of time or steps.
    Timeout,
    /// The kernel executed `trap`.
    Trap,
    /// An `assert` of the kernel failed.
    Assert,
    /// An instruction whose result is undefined, such as a shuffle outside its own mask.
    Undefined,
}

impl FindingKind {
    /// The stable word, as in `error[exec-race]`.
    pub fn as_str(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "exec-out-of-bounds",
            FindingKind::Misaligned => "exec-misaligned",
            FindingKind::WriteToInput => "exec-write-to-input",
            FindingKind::Uninitialized => "exec-uninitialized",
            FindingKind::Race => "exec-race",
            FindingKind::BarrierMisuse => "exec-barrier",
            FindingKind::Asynchrony => "exec-asynchrony",
            FindingKind::TensorMap => "exec-tensor-map",
            FindingKind::Deadlock => "exec-deadlock",
            FindingKind::Timeout => "exec-timeout",
            FindingKind::Trap => "exec-trap",
            FindingKind::Assert => "exec-assert",
            FindingKind::Undefined => "exec-undefined",
        }
    }

    /// The fault in one line.
    pub fn title(self) -> &'static str {
        match self {
            FindingKind::OutOfBounds => "the kernel accesses memory that is not its own",
            FindingKind::Misaligned => "an address is not a multiple of the bytes of the access",
            FindingKind::WriteToInput => "the kernel writes to an input",
            FindingKind::Uninitialized => "the kernel uses an uninitialised value",
            FindingKind::Race => "two accesses of one place are not ordered",
            FindingKind::BarrierMisuse => "a barrier is misused",
            FindingKind::Asynchrony => "asynchronous work is not set up or not waited for",
            FindingKind::TensorMap => "a tensor map does not fit its copy",
            FindingKind::Deadlock => "threads wait for ever",
            FindingKind::Timeout => "the kernel does not end within its limit",
            FindingKind::Trap => "the kernel stops itself",
            FindingKind::Assert => "an assertion of the kernel fails",
            FindingKind::Undefined => "the kernel has undefined behaviour of C++ or CUDA",
        }
    }
}
