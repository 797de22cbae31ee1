//! Each reader is right on the smallest tensor-core kernels, and each law is broken once and found.

mod attention;
mod clusters;
mod order;
mod row_program;
mod scaled;
mod single;
mod sums;

use super::*;
use crate::atom::Operand;
use crate::dtype::DType;
use crate::layout::{Swizzle, make_layout};
use crate::tiling::MapSwizzle;

fn ints(extents: &[i64]) -> IntTuple {
    IntTuple::tuple(extents.iter().map(|e| IntTuple::int(*e))).expect("a tuple")
}

/// A permutation of these extents.
fn extents(by_mode: &[i64]) -> Tiler {
    Tiler::Tuple(by_mode.iter().map(|extent| Tiler::Shape(IntTuple::int(*extent))).collect())
}

const TILES: [&str; 3] = ["TileA", "TileB", "TileD"];

/// The pipeline of A.
fn ring(stages: i64, completes: Completion) -> Pipeline {
    Pipeline { name: "mainloop", tensors: vec!["A"], stages, completes }
}

fn smem(name: &'static str, x: i64, proxy: Proxy) -> SmemTensor {
    let layout = Layout::new(ints(&[x, 64, 3]), ints(&[64, 1, 64 * x])).expect("a layout");
    let swizzle = Swizzle::new(3, 3, 3).ok();
    SmemTensor {
        name,
        modes: "(BX,BK,STAGES)",
        dtype: DType::F16,
        swizzle,
        layout,
        align: Bytes(1024),
        proxy,
        lives: Lives::Kernel,
    }
}

const FACTOR: Place = Place::Global(Global { align: Bytes(16), multiple: 8, ..Global::matrix("A") });

fn store() -> TileCopy {
    TileCopy {
        name: "StoreD",
        what: "store of D",
        tile: [128, 64],
        dtype: DType::F32,
        from: Place::Fragments("Mma", Operand::C),
        to: Place::Global(Global { align: Bytes(4), ..Global::matrix("A") }),
        engine: Engine::Fragments(CopyOp::Universal(Bytes(4))),
        guard: Guard::Predicate,
        completes: Completion::Program,
        split: None,
    }
}

fn cp_async(threads: &str, values: &str) -> Engine {
    let [threads, values] = [threads, values].map(|text| text.parse().expect("a layout"));
    Engine::Threads { op: CopyOp::CpAsync(Bytes(16)), threads, values }
}

/// (128,64,64) by mma.sync: A by cp.async and ldmatrix, B taken from registers that nobody fills, which is no law of a copy.
fn mma_sync() -> Tiling {
    let mma = TileMma {
        name: "Mma",
        tiles: TILES,
        tile: [128, 64, 64],
        atom: "SM80_16x8x16_F32F16F16F32_TN".to_owned(),
        atoms: make_layout(&ints(&[2, 2, 1])).expect("a layout"),
        permutation: Some(extents(&[32, 32, 16])),
        a: Factor::Fragments,
        b: Factor::Fragments,
        promotion: None,
    };
    let load = TileCopy {
        name: "CopyA",
        what: "copy of A",
        tile: [128, 64],
        dtype: DType::F16,
        from: FACTOR,
        to: Place::Shared("A"),
        engine: cp_async("(16,8):(8,1)", "(1,8):(0,1)"),
        guard: Guard::ZeroFill,
        completes: Completion::CpAsyncGroup,
        split: None,
    };
    let fragments = TileCopy {
        name: "LdsmA",
        what: "ldmatrix of A",
        from: Place::Shared("A"),
        to: Place::Fragments("Mma", Operand::A),
        engine: Engine::Fragments(CopyOp::LdMatrix),
        guard: Guard::None,
        completes: Completion::Program,
        ..load.clone()
    };
    Tiling {
        tile: [128, 64, 64],
        smem: vec![smem("A", 128, Proxy::Generic)],
        pipelines: vec![ring(3, Completion::CpAsyncGroup)],
        copies: vec![load, fragments, store()],
        mmas: vec![mma],
        reduces: Vec::new(),
        roles: vec![Role { task: Task::All, threads: 128, registers: None }],
        cluster: [1, 1, 1],
        order: Order::numbered(&[("m", 128), ("n", 128)], Some(("k", 64))),
    }
}

/// The same by TMA and WGMMA.
fn wgmma() -> Tiling {
    let load = TileCopy {
        name: "TmaA",
        what: "copy of A",
        tile: [128, 64],
        dtype: DType::F16,
        from: FACTOR,
        to: Place::Shared("A"),
        engine: Engine::Tma { extents: [128, 64], sharers: 1, rounds: false },
        guard: Guard::TensorMap,
        completes: Completion::Mbarrier,
        split: None,
    };
    Tiling {
        tile: [128, 64, 64],
        smem: vec![smem("A", 128, Proxy::Async)],
        pipelines: vec![ring(3, Completion::Mbarrier)],
        copies: vec![load, store()],
        mmas: vec![TileMma {
            name: "Mma",
            tiles: TILES,
            tile: [128, 64, 64],
            atom: "SM90_64x64x16_F32F16F16_SS".to_owned(),
            atoms: make_layout(&ints(&[2, 1, 1])).expect("a layout"),
            permutation: None,
            a: Factor::Shared("A"),
            b: Factor::Fragments,
            promotion: None,
        }],
        reduces: Vec::new(),
        roles: vec![
            Role { task: Task::Consume, threads: 256, registers: None },
            Role { task: Task::Produce, threads: 32, registers: None },
        ],
        cluster: [1, 1, 1],
        order: Order::numbered(&[("m", 128), ("n", 128)], Some(("k", 64))),
    }
}

fn laws(tiling: &Tiling) -> Vec<Law> {
    tiling.flaws().iter().map(|flaw| flaw.law).collect()
}

/// What is found once a right tiling was changed.
fn broken(mut tiling: Tiling, change: impl FnOnce(&mut Tiling)) -> Vec<Law> {
    change(&mut tiling);
    laws(&tiling)
}

#[test]
fn right_tilings_have_no_flaw() {
    assert_eq!(mma_sync().flaws(), []);
    assert_eq!(wgmma().flaws(), []);
}

#[test]
fn a_tv_layout_that_leaves_out_or_repeats_elements_is_found() {
    // Two places for some threads, and none for others.
    let twice = broken(mma_sync(), |t| t.copies[0].engine = cp_async("(16,8):(9,1)", "(1,8):(0,1)"));
    assert!(twice.contains(&Law::CoversOnce), "{twice:?}");
    // Rows of the tile are not a multiple of what the threads cover.
    let ragged = broken(mma_sync(), |t| t.copies[0].engine = cp_async("(24,8):(8,1)", "(1,8):(0,1)"));
    assert!(!ragged.is_empty(), "{ragged:?}");
    // More threads than there are.
    let many = broken(mma_sync(), |t| t.copies[0].engine = cp_async("(32,8):(8,1)", "(1,8):(0,1)"));
    assert_eq!(many, [Law::Roles]);
    // Fragments of another operand.
    let other = broken(mma_sync(), |t| t.copies[1].to = Place::Fragments("Mma", Operand::B));
    assert!(other.contains(&Law::CoversOnce), "{other:?}");
}

#[test]
fn an_mma_that_does_not_divide_the_tile_is_found() {
    assert!(broken(mma_sync(), |t| t.mmas[0].permutation = Some(extents(&[48, 32, 16]))).contains(&Law::CoversOnce));
    assert!(broken(mma_sync(), |t| t.roles[0].threads = 256).contains(&Law::Roles));
    assert!(broken(wgmma(), |t| t.roles[0].threads = 128).contains(&Law::Roles));
    assert!(broken(wgmma(), |t| t.cluster = [1, 2, 1]).contains(&Law::Roles));
    let twice = broken(wgmma(), |t| t.mmas[0].atoms = make_layout(&ints(&[4, 1, 1])).expect("a layout"));
    assert!(twice.contains(&Law::CoversOnce), "{twice:?}");
}

#[test]
fn vectors_are_whole_and_aligned_from_the_base_on() {
    let base = |align, multiple| Place::Global(Global { align, multiple, ..Global::matrix("A") });
    assert_eq!(broken(mma_sync(), |t| t.copies[0].from = base(Bytes(8), 8)), [Law::Aligned]);
    assert_eq!(broken(mma_sync(), |t| t.smem[0].align = Bytes(8)).first(), Some(&Law::Aligned));
    // The other major: a vector's elements are rows apart.
    let m_major = Place::Global(Global { contiguous: 0, align: Bytes(16), multiple: 8, ..Global::matrix("A") });
    assert_eq!(broken(mma_sync(), |t| t.copies[0].from = m_major), [Law::Contiguous]);
    // The widest access of the text: vectors of 16 bytes in, rows of ldmatrix out.
    assert_eq!(mma_sync().widest("A"), Ok(Bytes(16)));
    // A swizzle that exchanges single elements tears vectors apart.
    let fine = broken(mma_sync(), |t| t.smem[0].swizzle = Swizzle::new(3, 0, 6).ok());
    assert!(fine.contains(&Law::Contiguous), "{fine:?}");
    // Parts of elements.
    let [load, parts] = [16, 3].map(|bytes| CopyOp::Universal(Bytes(bytes)));
    let through = |t: &mut Tiling, width| {
        let Engine::Threads { op, .. } = &mut t.copies[0].engine else { panic!("threads") };
        (*op, t.copies[0].guard) = (width, Guard::Predicate);
        t.copies[0].dtype = DType::F32;
    };
    assert!(broken(mma_sync(), |t| through(t, parts)).contains(&Law::Aligned));
    assert_ne!(broken(mma_sync(), |t| through(t, parts)), broken(mma_sync(), |t| through(t, load)));
    // One predicate for a vector across the end of a row.
    assert_eq!(broken(mma_sync(), |t| t.copies[0].from = base(Bytes(16), 4)), [Law::Guarded]);
}

#[test]
fn what_lies_outside_of_a_matrix_is_guarded() {
    assert_eq!(broken(mma_sync(), |t| t.copies[0].guard = Guard::None), [Law::Guarded]);
    assert_eq!(broken(mma_sync(), |t| t.copies[2].guard = Guard::None), [Law::Guarded]);
    assert_eq!(broken(mma_sync(), |t| t.copies[1].guard = Guard::Predicate), [Law::Guarded]);
    assert_eq!(broken(wgmma(), |t| t.copies[0].guard = Guard::Predicate), [Law::Guarded]);
}

#[test]
fn shared_memory_has_a_place_for_each_coordinate() {
    let overlapping = Layout::new(ints(&[128, 64, 3]), ints(&[64, 1, 64 * 127])).expect("a layout");
    assert!(broken(mma_sync(), |t| t.smem[0].layout = overlapping).contains(&Law::Injective));
    assert_eq!(broken(mma_sync(), |t| t.smem[0].lives = Lives::Epilogue), [Law::Lifetime, Law::Lifetime]);
    // A swizzle that reaches past the elements that there are.
    let far = broken(mma_sync(), |t| t.smem[0].swizzle = Swizzle::new(3, 3, -11).ok());
    assert!(far.contains(&Law::Injective), "{far:?}");
    // Stages that lie in each other, or apart by less than the swizzle reaches; and rows that do, far from the next stage.
    for (row, stage) in [(64, 64 * 64), (64, 64 * 128 - 512), (32, 64 * 128)] {
        let met = Layout::new(ints(&[128, 64, 3]), ints(&[row, 1, stage])).expect("a layout");
        let found = broken(mma_sync(), |t| t.smem[0].layout = met);
        assert!(found.contains(&Law::Injective), "{row} {stage}: {found:?}");
    }
    let none = broken(mma_sync(), |t| t.smem.clear());
    assert!(none.contains(&Law::CoversOnce), "{none:?}");
}

#[test]
fn tma_finds_boxes_and_swizzles_that_are_not_its_own() {
    let boxes =
        |extents, sharers| broken(wgmma(), |t| t.copies[0].engine = Engine::Tma { extents, sharers, rounds: false });
    assert_eq!(boxes([64, 64], 1), [Law::CoversOnce]);
    assert_eq!(boxes([128, 0], 1), [Law::Box]);
    assert_eq!(boxes([128, 4], 1), [Law::Box]);
    assert_eq!(boxes([48, 64], 1), [Law::CoversOnce]);
    // A box narrower than a piece is written as pieces of its own.
    assert!(boxes([128, 32], 2).contains(&Law::CoversOnce));
    // A swizzle for threads; one of another span; none, which WGMMA does not read.
    for (bits, base, shift) in [(3, 2, 3), (3, 3, 4), (2, 3, 3)] {
        let found = broken(wgmma(), |t| t.smem[0].swizzle = Swizzle::new(bits, base, shift).ok());
        assert!(found.iter().any(|law| matches!(law, Law::Swizzle | Law::Box)), "{bits} {base} {shift}: {found:?}");
    }
    assert!(broken(wgmma(), |t| t.smem[0].swizzle = None).contains(&Law::Swizzle));
    // The hardware exchanges bits of addresses, so that the base has to have none of them.
    assert_eq!(broken(wgmma(), |t| t.smem[0].align = Bytes(128)), [Law::Swizzle]);
    assert_eq!(broken(wgmma(), |t| t.smem[0].proxy = Proxy::Generic), [Law::Swizzle]);
    let unaligned = Place::Global(Global { align: Bytes(8), multiple: 8, ..Global::matrix("A") });
    assert_eq!(broken(wgmma(), |t| t.copies[0].from = unaligned), [Law::Aligned]);
    // Rows with gaps.
    let padded = Layout::new(ints(&[128, 64, 3]), ints(&[72, 1, 72 * 128])).expect("a layout");
    assert!(broken(wgmma(), |t| t.smem[0].layout = padded).contains(&Law::Swizzle));
    // Stages that begin where the swizzle's block does not.
    let apart = Layout::new(ints(&[128, 64, 3]), ints(&[64, 1, 64 * 129])).expect("a layout");
    assert!(broken(wgmma(), |t| t.smem[0].layout = apart).contains(&Law::Swizzle));
}

#[test]
fn what_was_asked_before_is_not_what_another_tiling_moves() {
    // Sides are kept: a change of each of the things that they follow from gives others.
    let moves = |tiling: &Tiling, copy: usize| tiling.moves(&tiling.copies[copy]).expect("right").expect("of threads");
    let (own, fragments) = (moves(&mma_sync(), 0), moves(&mma_sync(), 2));
    let mut changed = mma_sync();
    changed.copies[0].engine = cp_async("(32,4):(4,1)", "(1,8):(0,1)");
    assert_ne!(moves(&changed, 0), own);
    changed.copies[0].tile = [64, 64];
    assert_ne!(moves(&changed, 0).values.len(), own.values.len());
    changed.mmas[0].atoms = make_layout(&ints(&[1, 4, 1])).expect("a layout");
    changed.mmas[0].permutation = None;
    assert_ne!(moves(&changed, 2), fragments);
    assert_eq!((moves(&mma_sync(), 0), moves(&mma_sync(), 2)), (own, fragments));
}

#[test]
fn banks_are_counted_from_the_same_layouts() {
    let found = mma_sync().shared().expect("right accesses");
    let worst: Vec<u64> = found[0].accesses.iter().map(|access| access.extra()).collect();
    // A copy of 16 bytes takes at least as many passes as there are lines; none of ldmatrix is in the way of another.
    assert_eq!((found[0].name.as_str(), worst.last()), ("sA", Some(&0)), "{}", found[0]);
    // Without a swizzle, the 8 rows of a matrix lie in the same banks.
    let mut plain = mma_sync();
    plain.smem[0].swizzle = None;
    let plain = plain.shared().expect("right accesses");
    assert!(plain[0].accesses.iter().any(|access| access.worst == 32), "{}", plain[0]);
    assert_eq!(wgmma().shared().expect("no accesses")[0].accesses, []);
}

#[test]
fn counts_follow_from_the_layouts() {
    let counts = mma_sync().counts().expect("right copies");
    let copies: Vec<(u64, u64, u64)> =
        counts.copies.iter().map(|copy| (copy.instructions, copy.width.0, copy.sectors)).collect();
    // 128 x 64 halves by 16 bytes a thread: 1024 vectors, 32 a warp; ldmatrix.x4 moves 512 bytes; 8 rows of 2 sectors a store.
    assert_eq!(copies, [(32, 16, 512), (64, 16, 0), (256, 4, 8 * 256)]);
    assert_eq!((counts.mmas, counts.products, counts.accumulators), (256, 128 * 64 * 64, 64));
    assert_eq!(counts.in_flight, Bytes(2 * 128 * 64 * 2));
    let tma = wgmma().counts().expect("right copies");
    assert_eq!((tma.copies[0].instructions, tma.copies[0].bytes), (1, Bytes(128 * 64 * 2)));
    assert_eq!((tma.mmas, tma.accumulators), (2 * 4, 32));
    assert_eq!(wgmma().smem_bytes().expect("bytes"), Bytes(3 * 128 * 64 * 2 + 1024));
    // Tensors of the epilogue lie where the stages do; the larger of both counts.
    let mut lent = mma_sync();
    lent.smem[0].lives = Lives::Mainloop;
    let stages = lent.smem_bytes().expect("bytes");
    lent.smem.push(SmemTensor { lives: Lives::Epilogue, align: Bytes(16), ..smem("D", 64, Proxy::Generic) });
    assert_eq!(lent.smem_bytes().expect("bytes"), stages);
    lent.smem.push(SmemTensor { lives: Lives::Epilogue, align: Bytes(16), ..smem("E", 128, Proxy::Generic) });
    assert_eq!(lent.smem_bytes().expect("bytes"), Bytes(3 * (64 + 128) * 64 * 2));
}

#[test]
fn types_are_printed_values() {
    let types = |tiling: &Tiling| {
        let all = tiling.aliases();
        move |name: &str| all.iter().find(|alias| alias.name == name).map(|alias| alias.ty.clone()).unwrap_or_default()
    };
    let text = types(&mma_sync());
    assert_eq!(text("TileA"), "Shape<_128,_64>");
    assert_eq!(
        text("SmemA"),
        "decltype(composition(Swizzle<3,3,3>{}, Layout<Shape<_128,_64,_3>,Stride<_64,_1,_8192>>{}))"
    );
    assert_eq!(
        text("CopyA"),
        "TiledCopy<Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>, half_t>, \
         Layout<Shape<Shape<_8,_16>,_8>,Stride<Stride<_128,_1>,_16>>, Shape<_16,_64>>"
    );
    assert_eq!(
        text("LdsmA"),
        "TiledCopy<Copy_Atom<SM75_U32x4_LDSM_N, half_t>, \
         Layout<Shape<Shape<_4,_8,_2,_2>,Shape<Shape<_2,_2,_2>,Shape<_1,_1>>>,\
         Stride<Stride<_64,_1,_16,_0>,Stride<Stride<_32,_8,_256>,Stride<_0,_0>>>>, Shape<_32,_16>>"
    );
    let text = types(&wgmma());
    assert_eq!(
        text("SmemA"),
        "ComposedLayout<Swizzle<3,4,3>,smem_ptr_flag_bits<16>,Layout<Shape<_128,_64,_3>,Stride<_64,_1,_8192>>>"
    );
    assert!(text("Mma").starts_with("TiledMMA<MMA_Atom<SM90_64x64x16_F32F16F16_SS<GMMA::Major::K,GMMA::Major::K>>, "));
}

#[test]
fn a_tensor_map_is_read_off_the_copy() {
    let tiling = wgmma();
    let map = tiling.copies[0].tensor_map(&tiling.smem[0], 4096, [1000, 72], 80, [1, 0]).expect("a tensor map");
    assert_eq!(map.to_string(), "f16 (72,1000):(1,160 B), box (64,128), swizzle 128 B");
    assert_eq!(map.address, 4096);
    // Nothing else is copied by a tensor map.
    assert_eq!(tiling.copies[1].tensor_map(&tiling.smem[0], 0, [1, 8], 8, [1, 0]), None);
    for (mode, bits) in MapSwizzle::ALL.iter().zip(0..) {
        assert_eq!(mode.bits(), bits);
    }
}
