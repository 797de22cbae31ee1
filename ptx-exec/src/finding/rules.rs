//! The texts of the rules: the word, the requirement, the reason, the section of the PTX ISA, and the remedy.

use super::FindingKind;

/// The texts of a rule.
pub(super) struct Said {
    pub(super) kind: FindingKind,
    pub(super) word: &'static str,
    pub(super) required: &'static str,
    pub(super) because: &'static str,
    /// The title of a section of the PTX ISA; empty without one.
    pub(super) section: &'static str,
    pub(super) help: &'static str,
}

macro_rules! rules {
    ($($kind:ident { $($rule:ident $word:literal {
        required $required:literal because $because:literal section $section:literal help $help:literal
    })* })*) => {
        /// A rule that a finding breaks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[doc = concat!("`", $word, "`: ", $required, ".")] $rule,)*)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$($(Rule::$rule,)*)*];

            pub(super) fn said(self) -> &'static Said {
                match self {
                    $($(Rule::$rule => &Said {
                        kind: FindingKind::$kind,
                        word: $word,
                        required: $required,
                        because: $because,
                        section: $section,
                        help: $help,
                    },)*)*
                }
            }
        }
    };
}

rules! {
    OutOfBounds {
        InBounds "in-bounds" {
            required "an element of a tensor, or a byte of an allocation or a variable"
            because "a GPU reads or corrupts whatever lies there, or faults"
            section ""
            help "check the predicate of the access and the stride of the leading dimension"
        }
        BranchIndex "branch-index" {
            required "an index within the list of labels"
            because "the branch goes to an undefined place"
            section "brx.idx"
            help "check the value that the `switch` is on"
        }
        MulticastMask "multicast-mask" {
            required "a mask that names only blocks of the cluster"
            because "the copy goes to blocks that do not exist"
            section "cp.async.bulk.tensor"
            help "make the mask from the size of the cluster at launch"
        }
    }
    Misaligned {
        Aligned "aligned" {
            required "an address that is a multiple of the bytes of the access"
            because "a GPU faults on a misaligned access; arrays and tensors are aligned only as declared"
            section "Addresses as Operands"
            help "align the array or the pointer that is passed, or use narrower accesses"
        }
    }
    WriteToInput {
        InputsAreRead "inputs-are-read" {
            required "writes to outputs only"
            because "the caller and other launches may read an input at the same time"
            section ""
            help "check which tensor the address comes from; declare the tensor as an output if the kernel writes it"
        }
    }
    Uninitialized {
        Initialised "initialised" {
            required "a write before the read: shared memory by the block itself, a workspace by an earlier entry"
            because "uninitialised memory and registers hold arbitrary old values"
            section ""
            help "find the instruction that should write it; check its predicate, and that it runs first"
        }
    }
    Race {
        Ordered "ordered" {
            required "a barrier, or a fence with an atomic, between a write and another access of the same place"
            because "threads and blocks run in any order"
            section "Conflict and Data-races"
            help "order the two lines, or give each element one thread"
        }
        OneStore "one-store" {
            required "the same value from all lanes that store to one place"
            because "it is undefined which lane's value remains"
            section "Conflict and Data-races"
            help "let one lane store, or use an atomic"
        }
        OneWriter "one-writer" {
            required "one writer of each element, or an order between its writers"
            because "threads write in any order, and the last value remains"
            section "Conflict and Data-races"
            help "let one thread write the element, or use an atomic"
        }
        WarpOrder "warp-order" {
            required "a barrier of the warp between accesses of one place by its lanes"
            because "lanes of a warp do not run in lockstep"
            section "bar.warp.sync"
            help "add `__syncwarp()` (`bar.warp.sync`) between the two lines"
        }
        BlockOrder "block-order" {
            required "a barrier of the block between accesses of one place by its warps"
            because "warps of a block run in any order"
            section "bar, barrier"
            help "add `__syncthreads()` (`bar.sync`) between the two lines"
        }
        LeftEarly "left-early" {
            required "both threads at the barrier between their accesses"
            because "a barrier does not order the accesses of a thread that has exited"
            section "bar, barrier"
            help "let the thread reach the barrier before it returns"
        }
        ClusterOrder "cluster-order" {
            required "a barrier of the cluster between accesses of one place by its blocks"
            because "blocks of a cluster run in any order"
            section "barrier.cluster"
            help "add `cluster.sync()` (`barrier.cluster.arrive`, `barrier.cluster.wait`) between the two lines"
        }
        GridOrder "grid-order" {
            required "a release and an acquire of scope gpu between accesses of one place by different blocks"
            because "blocks run in any order, or at the same time"
            section "Release and Acquire Patterns"
            help "write, `__threadfence()`, set an atomic flag; read the flag, `__threadfence()`, read. Or use two kernels"
        }
        AtomicOnBothSides "atomic-on-both-sides" {
            required "atomic accesses on both sides, or an order between a plain access and an atomic one"
            because "atomics are atomic only with respect to other atomics"
            section "Morally Strong Operations"
            help "make the plain access atomic, or order the two: `__syncthreads()` in a block, two kernels between blocks"
        }
        Scope "scope" {
            required "a scope that includes both threads"
            because "an atomic or a fence does not order accesses of threads outside its scope"
            section "Scope"
            help "widen the scope: `.gpu` in PTX, `__threadfence()`, `cuda::thread_scope_device`"
        }
        AcquireFence "acquire-fence" {
            required "an acquire fence between the read of a flag and the accesses that the flag announces"
            because "a relaxed or volatile read of a flag does not order the accesses after it"
            section "Release and Acquire Patterns"
            help "add `__threadfence()` (`fence.acq_rel.gpu`) after the loop that reads the flag, or read it with `ld.acquire.gpu`"
        }
        ReleaseFence "release-fence" {
            required "a release fence by the thread that sets a flag, between the accesses that the flag announces and the flag"
            because "a relaxed or volatile write of a flag does not order the accesses before it"
            section "Release and Acquire Patterns"
            help "execute `__threadfence()` (`fence.acq_rel.gpu`) in the thread that sets the flag, after any barrier and just before the flag"
        }
        OneWidth "one-width" {
            required "atomic accesses of one place that have the same address and the same number of bytes"
            because "accesses that overlap only in part are not atomic with respect to each other"
            section "Morally Strong Operations"
            help "access the place with one type everywhere"
        }
        ReadOnlyPath "read-only-path" {
            required "`ld.global.nc` reads only memory that the kernel does not write"
            because "the read-only cache is not coherent with writes of the kernel, even ordered ones"
            section "ld.global.nc"
            help "use a plain load: no `__ldg()`, no `const __restrict__` pointer to memory that the kernel writes"
        }
        ProxyFence "proxy-fence" {
            required "`fence.proxy.async` between a thread's write and its use by TMA or `wgmma`"
            because "TMA and `wgmma` access memory through the async proxy, which may still see the old bytes"
            section "Proxies"
            help "add `fence.proxy.async` after the write and before the barrier (CuTe: `tma_store_fence()`)"
        }
        WriteBeforeAsync "write-before-async" {
            required "`fence.proxy.async` by the writer and then a barrier, before TMA or `wgmma` reads the bytes"
            because "the copy or product may read before the write"
            section "Proxies"
            help "add `fence.proxy.async` and then `__syncthreads()` after the write (CuTe: `tma_store_fence()`)"
        }
        UseBeforeOverwrite "use-before-overwrite" {
            required "a barrier between the last access of a place and the issue of a copy that overwrites it"
            because "a copy may arrive as soon as it is issued"
            section "cp.async.bulk"
            help "wait for all readers before the copy is issued: `__syncthreads()`, or the stage's empty `mbarrier`"
        }
        MapRelease "map-release" {
            required "a release of the tensormap proxy between a change of a map and its use"
            because "copies read maps through the tensormap proxy, which may still see the old map"
            section "Proxies"
            help "publish it by `tensormap.cp_fenceproxy`, or add `fence.proxy.tensormap::generic.release.gpu` after the change"
        }
        MapAcquire "map-acquire" {
            required "an acquire of the tensormap proxy, in the block that uses a map, after the map was written"
            because "copies read maps through the tensormap proxy, which may still see the old map"
            section "Proxies"
            help "add `fence.proxy.tensormap::generic.acquire.gpu [map], 128` and a barrier of its readers before the copy"
        }
        MapInUse "map-in-use" {
            required "the end of every copy that uses a map before the map is changed"
            because "a copy may read its map at any moment between its issue and its wait"
            section "Asynchronous Operations"
            help "wait for the copies first: their `mbarrier`, or `cp.async.bulk.wait_group 0`"
        }
        CopyCommit "copy-commit" {
            required "`cp.async.commit_group` after a copy that a `cp.async.wait_group` waits for"
            because "`cp.async.wait_group` waits for committed groups only"
            section "cp.async.commit_group"
            help "add `cp.async.commit_group` after the copy (CuTe: `cp_async_fence()`)"
        }
        CopyWait "copy-wait" {
            required "`cp.async.wait_group` by the thread that copies, before the bytes are used"
            because "a copy may arrive at any moment between its issue and its wait"
            section "cp.async.wait_group / cp.async.wait_all"
            help "add `cp.async.wait_group`, with few enough groups left in flight, and then `__syncthreads()`"
        }
        CopyArrival "copy-arrival" {
            required "a wait for the phase of the `mbarrier` that a copy completes, before the bytes are used"
            because "a copy may arrive at any moment before its phase ends"
            section "mbarrier.test_wait/mbarrier.try_wait"
            help "add `mbarrier.try_wait` for the copy's phase before the line (CuTe: `wait_barrier`)"
        }
        BulkWait "bulk-wait" {
            required "`cp.async.bulk.wait_group` by the thread that copies, and then a barrier, before the bytes are used again"
            because "a bulk copy may read and write at any moment between its issue and its wait"
            section "cp.async.bulk.wait_group"
            help "add `cp.async.bulk.wait_group` (`.read` frees the source alone) and a barrier (CuTe: `tma_store_wait<0>()`)"
        }
        ProductWait "product-wait" {
            required "`wgmma.wait_group` before the operands of a product in shared memory are overwritten"
            because "a product may read its operands at any moment between its issue and its wait"
            section "wgmma.wait_group"
            help "add `wgmma.wait_group` before the stage is released (CuTe: `warpgroup_wait<0>()`)"
        }
    }
    BarrierMisuse {
        Barrier "barrier" {
            required "a barrier that all its threads reach, with the right count"
            because "the behaviour is undefined; a GPU hangs or continues too early"
            section "bar, barrier"
            help "check which threads arrive, and the count"
        }
        WholeWarp "whole-warp" {
            required "all threads of the warp at the barrier"
            because "the barrier is executed for the whole warp; a GPU hangs or continues too early"
            section "bar, barrier"
            help "move the barrier out of the branch, and do not return before it"
        }
        BarrierNumber "barrier-number" {
            required "a barrier from 0 to 15, and a count that is a multiple of 32 and at most the threads of the block"
            because "a block has 16 barriers, and a barrier counts whole warps"
            section "bar, barrier"
            help "correct the barrier's number or its count"
        }
        OneCount "one-count" {
            required "the same count in every `bar` of one phase of a barrier"
            because "the behaviour with different counts is undefined"
            section "bar, barrier"
            help "give each `bar` of that number the same count, or use another barrier"
        }
        ClusterTurns "cluster-turns" {
            required "one `barrier.cluster.arrive` and then one `barrier.cluster.wait` by each thread in each phase"
            because "any other order of the two is undefined"
            section "barrier.cluster"
            help "pair each arrive with one wait: `cluster.sync()`, or `arrive` and `wait` in turn"
        }
        MbarrierInit "mbarrier-init" {
            required "`mbarrier.init`, and a barrier after it, before any other use of the `mbarrier`"
            because "other threads may not see it initialised yet, and operations on uninitialised barriers are undefined"
            section "mbarrier.init"
            help "add `fence.mbarrier_init` and `__syncthreads()` (`cluster.sync()` for peers) after the initialisation"
        }
        MbarrierReuse "mbarrier-reuse" {
            required "`mbarrier.inval` before the memory of an `mbarrier` in use is initialised again"
            because "arrivals in the current phase are lost"
            section "mbarrier.inval"
            help "initialise it once, before the loop, or invalidate it when its last phase is over"
        }
        MbarrierCount "mbarrier-count" {
            required "exactly the number of arrivals in each phase that `mbarrier.init` sets, from 1 to 2^20 - 1"
            because "the phase ends too early, or never"
            section "mbarrier"
            help "make the count at `mbarrier.init` the number of threads that arrive"
        }
        MbarrierBytes "mbarrier-bytes" {
            required "expected bytes in each phase that equal the bytes of its copies, at most 2^20 - 1"
            because "the phase ends too early, or never"
            section "expect-tx operation"
            help "pass the total bytes of the phase's copies to `mbarrier.arrive.expect_tx`"
        }
        MbarrierPlace "mbarrier-place" {
            required "the `mbarrier` of a copy in the same block as its destination"
            because "a copy completes only an `mbarrier` in the block of its destination"
            section "cp.async.bulk"
            help "map both addresses to the same block of the cluster"
        }
    }
    Asynchrony {
        Asynchronous "asynchronous" {
            required "a wait for each copy, product or request before its memory or registers are used or freed"
            because "asynchronous work may happen at any moment between its issue and its wait"
            section "Asynchronous Operations"
            help "add the wait that the finding names"
        }
        GridDependency "grid-dependency" {
            required "`griddepcontrol.wait` before the first access of global memory"
            because "the previous kernel may still read or write that memory"
            section "griddepcontrol"
            help "add `cudaGridDependencySynchronize()` (`griddepcontrol.wait`) before the access"
        }
        RegisterRequest "register-request" {
            required "`setmaxnreg.inc` to more registers than a thread has, and `setmaxnreg.dec` to fewer"
            because "other requests are undefined"
            section "setmaxnreg"
            help "check the count against `.maxntid` and the registers that the kernel is compiled for"
        }
        PeerStart "peer-start" {
            required "a barrier of the cluster before the first access of a peer's shared memory"
            because "a block's shared memory does not exist before the block starts"
            section "barrier.cluster"
            help "add `cluster.sync()` (`barrier.cluster.arrive`, `barrier.cluster.wait`) at the start of the kernel"
        }
        PeerEnd "peer-end" {
            required "a barrier of the cluster between the last access of a peer's shared memory and the end of that peer"
            because "a block's shared memory is freed when the block ends"
            section "barrier.cluster"
            help "add `cluster.sync()` before the kernel returns"
        }
        CopyEnd "copy-end" {
            required "a wait for each copy into shared memory, before all threads of that block have exited"
            because "the shared memory may belong to another block when the copy arrives"
            section "cp.async.bulk"
            help "wait for the copy's `mbarrier` before the last thread returns"
        }
        CopyRoom "copy-room" {
            required "copies by `cp.async` in flight that fit the block's shared memory"
            because "copies of more bytes overlap, and overlapping copies write in any order"
            section "cp.async.wait_group"
            help "add `cp.async.commit_group` and `cp.async.wait_group` to the loop (CuTe: `cp_async_fence()`, `cp_async_wait<0>()`)"
        }
        BulkEnd "bulk-end" {
            required "`cp.async.bulk.wait_group` before the thread that copies from shared memory exits"
            because "the shared memory may belong to another block before the copy has read it"
            section "cp.async.bulk.wait_group"
            help "add `cp.async.bulk.wait_group.read 0` before the thread returns (CuTe: `tma_store_wait<0>()`)"
        }
        Warpgroup "warpgroup" {
            required "four whole warps, the first a multiple of 4, that all execute the `wgmma`"
            because "the whole warpgroup executes a `wgmma`"
            section "Asynchronous Warpgroup Level Matrix Instructions"
            help "make the block a multiple of 128 threads, and keep branches around `wgmma` uniform in a warpgroup"
        }
        ProductFence "product-fence" {
            required "`wgmma.fence` between a write of a register and a product that uses it"
            because "a product may otherwise see the register's old value"
            section "wgmma.fence"
            help "add `wgmma.fence` before the product (CuTe: `warpgroup_arrive()`)"
        }
        ProductRegisters "product-registers" {
            required "`wgmma.wait_group` before a register of a product in flight is used"
            because "a product reads and writes its registers at any moment between its issue and its wait"
            section "wgmma.wait_group"
            help "add `wgmma.wait_group` before the line (CuTe: `warpgroup_wait<0>()`)"
        }
        ProductEnd "product-end" {
            required "`wgmma.wait_group` before a warp with products in flight exits"
            because "the product may read shared memory after it belongs to another block"
            section "wgmma.wait_group"
            help "add `wgmma.wait_group 0` before the threads return (CuTe: `warpgroup_wait<0>()`)"
        }
    }
    TensorMap {
        MapField "map-field" {
            required "a map with every field set to a valid value"
            because "the copy faults, or moves other bytes"
            section "tensormap.replace"
            help "correct the value at `tensormap.replace`, or set the field that the finding names"
        }
        MapBytes "map-bytes" {
            required "a map from `cuTensorMapEncodeTiled` or `tensormap.replace`, unchanged by other stores"
            because "the encoding is not documented: only the driver and `tensormap.replace` may write parts of it"
            section "tensormap.replace"
            help "copy all 128 bytes of a map, and change its fields by `tensormap.replace`"
        }
        TensorMap "tensor-map" {
            required "a map with as many modes as the copy, and an address that the copy allows"
            because "the copy faults, or moves other bytes"
            section "Tensors"
            help "check the tensor, the box and the swizzle that the map is made from"
        }
    }
    Deadlock {
        Arrival "arrival" {
            required "every thread that a barrier or a mask names reaches the instruction"
            because "a GPU hangs, or continues without the missing threads"
            section "Parallel Synchronization and Communication Instructions"
            help "see where each thread waits; move the barrier out of the branch, and do not return before it"
        }
    }
    Timeout {
        End "end" {
            required "a kernel that ends within the limit of time or steps"
            because "a loop that does not end hangs the GPU"
            section ""
            help "check the loop's condition; if the kernel needs more steps, raise step_budget in the launch file or in Rust"
        }
    }
    Trap {
        NoTrap "no-trap" {
            required "a kernel that runs to its end"
            because "the launch fails, and its results are invalid"
            section "trap"
            help "check the condition before it"
        }
        Cooperative "cooperative" {
            required "a cooperative launch of a kernel that calls `grid.sync()`"
            because "other launches have no grid barrier, and `grid.sync()` stops the kernel"
            section "%envreg<32>"
            help "set `\"cooperative\": true` in the launch file, or call `Launch::cooperative(true)`"
        }
    }
    Assert {
        Assertion "assertion" {
            required "a kernel that runs to its end"
            because "the launch fails, and its results are invalid"
            section ""
            help "check the condition before it"
        }
    }
    Undefined {
        Defined "defined" {
            required "no undefined behaviour"
            because "compilers assume that it never happens, so each compiler gives another result"
            section ""
            help "correct the line that the finding names"
        }
        OwnMask "own-mask" {
            required "a mask that names every lane that executes the instruction"
            because "a lane outside its own mask gets an undefined result"
            section "shfl.sync"
            help "name all lanes that reach it: `0xffffffff` for a whole warp, or `__ballot_sync` of the branch's condition"
        }
        OneMask "one-mask" {
            required "the same mask from all lanes that a mask names"
            because "each lane waits until all lanes of its mask arrive with that same mask"
            section "shfl.sync"
            help "compute one mask before the lanes diverge, and use it in all of them"
        }
        WarpMatrix "warp-matrix" {
            required "all 32 threads of the warp at the instruction"
            because "each thread holds a part of the matrices; if one is missing, the result is undefined"
            section "Warp Level Matrix Multiply-Accumulate Instructions"
            help "make the block a multiple of 32 threads, and keep branches and returns around it uniform in a warp"
        }
    }
}
