//! The compact form that the machine runs: one entry with everything it calls, lowered once.

use super::ast::Loc;
use super::code_async::AsyncTables;
pub(super) use super::code_info::{
    AtomInfo, AtomOp, BarInfo, Combine, CopyInfo, FenceInfo, LaneInfo, MatrixInfo, MemInfo, MmaInfo, Order,
    PROXY_CLUSTER, PROXY_CTA, PROXY_GLOBAL, RedMode, Scope, SetpInfo, ShflMode, VoteMode,
};
use super::error::Position;
pub(super) use super::proof::Code;
use super::types::{Space, Ty};

/// Marks an absent operand or guard.
pub(super) const NONE: u32 = u32::MAX;

/// What an instruction does. Operands are rows of the register file, or indices of predicates; see [`Inst`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Nop,
    Bra,
    Brx,
    Exit,
    Trap,
    // Vector loops, 32 bits.
    Mov32,
    Add32,
    Sub32,
    Mul32,
    Mad32,
    And32,
    Or32,
    Xor32,
    Not32,
    Shl32,
    ShrU32,
    ShrS32,
    MinS32,
    MaxS32,
    MinU32,
    MaxU32,
    Selp32,
    AddF32,
    SubF32,
    MulF32,
    FmaF32,
    Lop3,
    // 64 bits, and between the two.
    Mov64,
    Add64,
    Sub64,
    Mul64,
    And64,
    Or64,
    Xor64,
    Shl64,
    ShrU64,
    ShrS64,
    Selp64,
    MulWideU32,
    MulWideS32,
    MadWideU32,
    MadWideS32,
    Widen,
    WidenS,
    Narrow,
    Pack64,
    Unpack64,
    SetpS32,
    SetpU32,
    SetpS64,
    SetpU64,
    SetpF32,
    SetpLane,
    PMov,
    PAnd,
    POr,
    PXor,
    PNot,
    PImm,
    Lane,
    Carry,
    Sreg,
    Ld,
    St,
    LdParam,
    Atom,
    CpAsync,
    CpCommit,
    CpWait,
    Fence,
    Bar,
    BarArrive,
    BarRed,
    WarpSync,
    Shfl,
    Vote,
    Match,
    Redux,
    Elect,
    ActiveMask,
    LdMatrix,
    StMatrix,
    MovMatrix,
    Mma,
    IsSpace,
    Vprintf,
    AssertFail,
    Sleep,
    GridWait,
    // The asynchronous proxy, and clusters.
    Mbarrier,
    Bulk,
    BulkCommit,
    BulkWait,
    ProxyFence,
    InitFence,
    Wgmma,
    WgmmaFence,
    WgmmaCommit,
    WgmmaWait,
    ClusterArrive,
    ClusterWait,
    Mapa,
    SetMaxRegisters,
    StAsync,
    Map,
    // Caches.
    Discard,
    /// All lanes of a warp have to be here.
    Converge,
}

/// One instruction. Which fields are read and written is the same for every operation: `d` and `e` are written, `a`, `b` and
/// `c` are read, of the operands in the list the first `defs` are written and the others are read. `x` is the
/// operation's own: a target, or an index into one of the tables of [`Code`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Inst {
    pub(super) op: Op,
    pub(super) defs: u8,
    pub(super) len: u8,
    /// A predicate, times two, plus one where it is negated; or [`NONE`].
    pub(super) guard: u32,
    pub(super) d: u32,
    pub(super) e: u32,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
    pub(super) list: u32,
    pub(super) x: u32,
}

impl Op {
    /// Whether lanes see registers of other lanes by it, or what is asynchronous sees registers.
    pub(super) fn crosses(self) -> bool {
        use Op::{
            Atom, Bar, BarArrive, BarRed, Converge, CpAsync, CpCommit, CpWait, Discard, Fence, GridWait, IsSpace, Ld,
            LdParam, Sleep, St,
        };
        let is_own = matches!(
            self,
            Ld | St
                | LdParam
                | Atom
                | CpAsync
                | CpCommit
                | CpWait
                | Fence
                | Bar
                | BarArrive
                | BarRed
                | IsSpace
                | Sleep
                | GridWait
                | Discard
                | Converge
        );
        // Those before `Ld` work lane by lane.
        !is_own && self as u32 >= Ld as u32
    }
}

impl Op {
    /// Whether lanes that its mask names execute it together.
    pub(super) fn meets(self) -> bool {
        matches!(self, Op::Shfl | Op::Vote | Op::Match | Op::Redux | Op::Elect)
    }
}

impl Inst {
    pub(super) fn new(op: Op) -> Inst {
        Inst { op, defs: 0, len: 0, guard: NONE, d: NONE, e: NONE, a: NONE, b: NONE, c: NONE, list: 0, x: 0 }
    }
}

/// Where an operand lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// A predicate: one bit a lane.
    Pred,
    /// A row of 32 words.
    W32,
    /// Two rows.
    W64,
}

/// What a constant's value is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// Nothing: a number.
    Zero,
    /// The address of a variable of the module.
    Global(u32),
    /// The offset of a shared variable, or its generic address.
    Shared(u32),
    SharedGeneric(u32),
    /// Where dynamic shared memory begins.
    Param,
}

/// A value that is in a register of its own before the entry begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constant {
    pub(super) row: u32,
    pub(super) wide: bool,
    pub(super) value: u64,
    pub(super) base: Base,
}

/// A variable of global or constant memory.
#[derive(Clone, Debug)]
pub(super) struct GlobalVariable {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) ty: Ty,
    pub(super) is_array: bool,
    pub(super) is_const: bool,
    pub(super) align: u64,
    pub(super) addresses: Vec<InitialAddress>,
}

/// A place in a variable that holds the address of another, or a byte of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct InitialAddress {
    pub(super) at: u64,
    pub(super) bytes: u64,
    pub(super) of: u32,
    pub(super) offset: i64,
    /// Which byte of the address; all of them where it is `None`.
    pub(super) byte: Option<u32>,
}

impl InitialAddress {
    /// The bytes to store, given the address of the other variable.
    pub(super) fn value(&self, target: u64) -> u64 {
        let address = target.wrapping_add_signed(self.offset);
        self.byte.map_or(address, |byte| address >> (8 * byte) & 0xff)
    }
}

/// A variable of shared memory.
#[derive(Clone, Debug)]
pub(super) struct SharedVariable {
    pub(super) name: String,
    /// `None` for dynamic shared memory.
    pub(super) bytes: Option<u64>,
    pub(super) align: u64,
}

/// A variable in the thread's local memory.
#[derive(Clone, Debug)]
pub(super) struct LocalVariable {
    pub(super) name: String,
    /// Bytes from the start of the thread's local memory.
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// A parameter of an entry.
#[derive(Clone, Debug)]
pub(super) struct ParamInfo {
    pub(super) name: String,
    pub(super) ty: Ty,
    pub(super) is_array: bool,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) pointee: Option<(Space, u64)>,
}

/// An entry as the lowering makes it; [`Code`] is one that was proved.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) insts: Vec<Inst>,
    /// Position of each instruction in the PTX, and in the source.
    pub(super) places: Vec<(Position, Option<u32>)>,
    /// Opcode of each instruction, as an index into `names`.
    pub(super) opcodes: Vec<u32>,
    pub(super) names: Vec<String>,
    pub(super) list: Vec<u32>,
    pub(super) lanes: Vec<LaneInfo>,
    pub(super) setps: Vec<SetpInfo>,
    pub(super) mems: Vec<MemInfo>,
    pub(super) atoms: Vec<AtomInfo>,
    pub(super) copies: Vec<CopyInfo>,
    pub(super) bars: Vec<BarInfo>,
    pub(super) matrices: Vec<MatrixInfo>,
    pub(super) mmas: Vec<MmaInfo>,
    /// Targets of `brx.idx`.
    pub(super) tables: Vec<Vec<u32>>,
    pub(super) constants: Vec<Constant>,
    pub(super) rows: u32,
    /// Where no lane sees a register of another lane: the rows that a lane may read without having written them.
    pub(super) alive: Option<Vec<u32>>,
    /// Branches that decide whether a barrier of the whole warp is executed, in order, each with the instruction where its ways meet.
    pub(super) partings: Vec<(u32, u32)>,
    pub(super) preds: u32,
    /// A thread's local memory, with what lies between its variables.
    pub(super) local_bytes: u64,
    /// The same without what keeps variables apart.
    pub(super) declared_local_bytes: u64,
    /// By ascending start.
    pub(super) locals: Vec<LocalVariable>,
    pub(super) globals: Vec<GlobalVariable>,
    pub(super) shared: Vec<SharedVariable>,
    pub(super) params: Vec<ParamInfo>,
    pub(super) param_bytes: u64,
    pub(super) reqntid: Option<[u32; 3]>,
    pub(super) maxntid: Option<[u32; 3]>,
    pub(super) cluster: Option<[u32; 3]>,
    /// Registers of a thread, where the entry says so, and blocks that are to share a multiprocessor.
    pub(super) maxnreg: Option<u32>,
    pub(super) minnctapersm: u32,
    /// Whether blocks may see each other's writes while they run: atomics, strong accesses, fences.
    pub(super) communicates: bool,
    pub(super) files: Vec<(u32, String)>,
    pub(super) locs: Vec<Loc>,
    pub(super) asyncs: AsyncTables,
}

impl Draft {
    /// The registers in an instruction's list.
    pub(super) fn listed(&self, inst: &Inst) -> &[u32] {
        &self.list[inst.list as usize..(inst.list + u32::from(inst.len)) as usize]
    }
}
