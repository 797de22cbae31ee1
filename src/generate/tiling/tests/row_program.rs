//! A row program: a cluster of four CTAs has rows of 16384 halves, sums their squares, and writes them scaled. It has no MMA.

use super::*;

/// A CTA's part: 8 rows of 4096, by 256 threads, 8 halves at a time; the sums go over lanes, warps and CTAs.
fn rows() -> Tiling {
    let vectors = || Engine::Threads {
        op: CopyOp::Universal(Bytes(16)),
        threads: "(1,256):(256,1)".parse().expect("a layout"),
        values: "(1,8):(0,1)".parse().expect("a layout"),
    };
    let load = TileCopy {
        name: "LoadX",
        what: "load of X",
        tile: [8, 4096],
        dtype: DType::F16,
        from: FACTOR,
        to: Place::Threads,
        engine: vectors(),
        guard: Guard::Elements,
        completes: Completion::Program,
        split: Some((1, 1)),
    };
    let store = TileCopy { name: "StoreY", what: "store of Y", from: Place::Threads, to: FACTOR, ..load.clone() };
    let partial = |name, parts: i64| SmemTensor {
        modes: "(ROWS,PARTS)",
        dtype: DType::F32,
        swizzle: None,
        layout: Layout::new(ints(&[8, parts]), ints(&[parts, 1])).expect("a layout"),
        align: Bytes(16),
        ..smem(name, 8, Proxy::Generic)
    };
    Tiling {
        tile: [8, 4096, 1],
        smem: vec![partial("OfWarps", 8), partial("OfCtas", 4)],
        pipelines: Vec::new(),
        copies: vec![load, store],
        mmas: Vec::new(),
        reduces: vec![TileReduce {
            what: "sum of squares",
            of: Reduced::Copied("LoadX"),
            mode: 1,
            op: ReduceOp::Sum,
            over: vec![Scope::Lanes, Scope::Warps("OfWarps"), Scope::Cluster(1, "OfCtas")],
        }],
        roles: vec![Role { task: Task::All, threads: 256, registers: None }],
        cluster: [1, 4, 1],
        order: Order::numbered(&[("m", 128), ("n", 128)], Some(("k", 64))),
    }
}

#[test]
fn a_row_program_is_proved() {
    let tiling = rows();
    assert_eq!(tiling.flaws(), []);
    let counts = tiling.counts().expect("right copies");
    assert_eq!((counts.mmas, counts.accumulators, tiling.mbarriers()), (0, 0, 0));
    // 8 rows of 4096 halves are 64 KiB, read once and written once.
    assert_eq!(counts.copies.iter().map(|copy| copy.bytes.0).sum::<u64>(), 2 * 65536);
    assert_eq!(tiling.smem_bytes().expect("bytes"), Bytes(8 * 8 * 4 + 8 * 4 * 4));
    assert_eq!(tiling.reduces[0].shuffles(&tiling), Ok(5));
}

#[test]
fn what_breaks_a_row_program_is_found() {
    let over = |scopes: Vec<Scope>| broken(rows(), |t| t.reduces[0].over = scopes);
    let (lanes, warps, ctas) = (Scope::Lanes, Scope::Warps("OfWarps"), Scope::Cluster(1, "OfCtas"));
    // A scope that is missing, or another mode of the cluster.
    assert_eq!(over(vec![warps, ctas]), [Law::Reduces]);
    assert_eq!(over(vec![lanes, ctas]), [Law::Reduces]);
    assert_eq!(over(vec![lanes, warps]), [Law::Reduces]);
    assert!(over(vec![lanes, warps, Scope::Cluster(0, "OfCtas")]).contains(&Law::Reduces));
    // No room for a part of each warp, none at all, and memory that is somebody else's.
    let small = |t: &mut Tiling| t.smem[0].layout = Layout::new(ints(&[8, 4]), ints(&[4, 1])).expect("a layout");
    assert_eq!(broken(rows(), small), [Law::Reduces]);
    assert_eq!(over(vec![lanes, Scope::Warps("Nowhere"), ctas]), [Law::Reduces]);
    assert_eq!(broken(rows(), |t| t.smem[0].lives = Lives::Epilogue), [Law::Reduces]);
    // More threads than there are.
    let many = |t: &mut Tiling| {
        let Engine::Threads { threads, .. } = &mut t.copies[0].engine else { unreachable!("threads") };
        *threads = "(2,256):(256,1)".parse().expect("a layout");
    };
    assert!(broken(rows(), many).contains(&Law::Roles));
    // Rows that are not aligned, no guard, and a copy that is not there.
    let bytes = |align| Place::Global(Global { align, multiple: 8, ..Global::matrix("A") });
    let unaligned = |t: &mut Tiling| (t.copies[0].from, t.copies[0].guard) = (bytes(Bytes(8)), Guard::None);
    assert_eq!(broken(rows(), unaligned), [Law::Guarded, Law::Aligned]);
    assert_eq!(broken(rows(), |t| t.reduces[0].of = Reduced::Copied("LoadZ")), [Law::Reduces]);
    assert_eq!(broken(rows(), |t| t.cluster = [1, 1, 1]), [Law::Reduces]);
    // A thread that stores others than it loaded: each element is stored once, but by the wrong thread.
    let crossed = |t: &mut Tiling| {
        let Engine::Threads { threads, .. } = &mut t.copies[1].engine else { unreachable!("threads") };
        *threads = "(1,(128,2)):(256,(2,1))".parse().expect("a layout");
    };
    assert_eq!(broken(rows(), crossed), [Law::CoversOnce]);
}

/// A thread loads (4,4) along rows, and stores it along columns to shared memory, where others take it out.
fn turned() -> Tiling {
    let matrix = |contiguous, name| Place::Global(Global { contiguous, align: Bytes(4), ..Global::matrix(name) });
    let copy = |name, what, [from, to]: [Place; 2], [threads, values]: [&str; 2]| TileCopy {
        name,
        what,
        tile: [32, 32],
        dtype: DType::F32,
        from,
        to,
        engine: Engine::Threads {
            op: CopyOp::Universal(Bytes(16)),
            threads: threads.parse().expect("a layout"),
            values: values.parse().expect("a layout"),
        },
        guard: if [from, to].iter().any(|place| matches!(place, Place::Global(_))) {
            Guard::Elements
        } else {
            Guard::None
        },
        completes: Completion::Program,
        split: None,
    };
    let (blocks, rows, shared) = ("(8,8):(1,8)", ["(8,8):(8,1)", "(1,4):(4,1)"], Place::Shared("A"));
    Tiling {
        tile: [32, 32, 1],
        smem: vec![SmemTensor {
            name: "A",
            modes: "(TileM,TileN)",
            dtype: DType::F32,
            swizzle: None,
            layout: Layout::new(ints(&[32, 32]), ints(&[32, 1])).expect("a layout"),
            align: Bytes(16),
            proxy: Proxy::Generic,
            lives: Lives::Kernel,
        }],
        pipelines: Vec::new(),
        copies: vec![
            copy("Y", "store of Y", [Place::Threads, matrix(1, "Y")], rows),
            copy("A", "load along M", [matrix(0, "A"), Place::Threads], [blocks, "(4,4):(1,4)"]),
            copy("A", "store of a row", [Place::Threads, shared], [blocks, "(4,4):(4,1)"]),
            copy("A", "load of a vector", [shared, Place::Threads], rows),
        ],
        mmas: Vec::new(),
        reduces: Vec::new(),
        roles: vec![Role { task: Task::All, threads: 64, registers: None }],
        cluster: [1, 1, 1],
        order: Order::numbered(&[("n", 32), ("m", 32)], None),
    }
}

#[test]
fn what_a_thread_turns_is_what_it_has_loaded() {
    assert_eq!(turned().flaws(), []);
    let engine = |copy: usize, of: fn(&mut Layout, &mut Layout)| {
        broken(turned(), |t| {
            let Engine::Threads { threads, values, .. } = &mut t.copies[copy].engine else { unreachable!("threads") };
            of(threads, values);
        })
    };
    // Another thread's block; rows that are stored along M; a vector taken out by a thread that does not write it.
    assert_eq!(engine(2, |threads, _| *threads = "(8,8):(8,1)".parse().expect("a layout")), [Law::CoversOnce]);
    assert_eq!(engine(2, |_, values| *values = "(4,4):(1,4)".parse().expect("a layout")), [Law::Contiguous]);
    assert_eq!(engine(3, |threads, _| *threads = "(8,8):(1,8)".parse().expect("a layout")), [Law::CoversOnce]);
}
