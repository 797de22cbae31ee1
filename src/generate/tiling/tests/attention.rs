//! Attention forward: Q once, K and V in rings of their own, two MMAs, the second one's A in registers, row maxima and sums.

use super::*;

/// 128 queries by two warpgroups, 128 keys a step, heads of 64.
fn attention() -> Tiling {
    let load = |name, what, tensor, x: i64| TileCopy {
        name,
        what,
        tile: [x, 64],
        dtype: DType::F16,
        from: FACTOR,
        to: Place::Shared(tensor),
        engine: Engine::Tma { extents: [x, 64], sharers: 1, rounds: false },
        guard: Guard::TensorMap,
        completes: Completion::Mbarrier,
        split: None,
    };
    let along_keys = Layout::new(ints(&[64, 128, 2]), ints(&[1, 64, 64 * 128])).expect("a layout");
    let value = SmemTensor { modes: "(HEAD,KEYS,STAGES)", layout: along_keys, ..smem("V", 64, Proxy::Async) };
    let (keys, query) = (smem("K", 128, Proxy::Async), smem("Q", 128, Proxy::Async));
    let staged = |tensor: SmemTensor, stages: i64| SmemTensor {
        layout: Layout::new(ints(&[128, 64, stages]), ints(&[64, 1, 64 * 128])).expect("a layout"),
        ..tensor
    };
    let output = SmemTensor { lives: Lives::Epilogue, ..staged(smem("O", 128, Proxy::Generic), 1) };
    let (of_v, of_rows) = (load("TmaV", "copy of V", "V", 64), |what, op| TileReduce {
        what,
        of: Reduced::Accumulators("Scores"),
        mode: 1,
        op,
        over: vec![Scope::Lanes],
    });
    let mma = |name, tiles, tile, atom: &str, a, b| TileMma {
        name,
        tiles,
        tile,
        atom: atom.to_owned(),
        atoms: make_layout(&ints(&[2, 1, 1])).expect("a layout"),
        permutation: None,
        a,
        b,
        promotion: None,
    };
    let ring = |name, tensor, stages| Pipeline { name, tensors: vec![tensor], stages, completes: Completion::Mbarrier };
    Tiling {
        tile: [128, 64, 128],
        smem: vec![
            SmemTensor { lives: Lives::Mainloop, ..staged(query, 1) },
            SmemTensor { lives: Lives::Mainloop, ..staged(keys, 2) },
            SmemTensor { lives: Lives::Mainloop, ..value },
            output,
        ],
        pipelines: vec![ring("queries", "Q", 1), ring("keys", "K", 2), ring("values", "V", 2)],
        copies: vec![
            load("TmaQ", "copy of Q", "Q", 128),
            load("TmaK", "copy of K", "K", 128),
            TileCopy {
                tile: [64, 128],
                from: Place::Global(Global { contiguous: 0, align: Bytes(16), multiple: 8, ..Global::matrix("V") }),
                engine: Engine::Tma { extents: [64, 128], sharers: 1, rounds: false },
                ..of_v
            },
            TileCopy {
                name: "StageO",
                what: "staging of O",
                tile: [128, 64],
                dtype: DType::F16,
                from: Place::Fragments("Output", Operand::C),
                to: Place::Shared("O"),
                engine: Engine::Fragments(CopyOp::StMatrix),
                guard: Guard::None,
                completes: Completion::Program,
                split: None,
            },
        ],
        mmas: vec![
            mma(
                "Scores",
                ["TileQ", "TileK", "TileS"],
                [128, 128, 64],
                "SM90_64x128x16_F32F16F16_SS",
                Factor::Shared("Q"),
                Factor::Shared("K"),
            ),
            mma(
                "Output",
                ["TileP", "TileV", "TileO"],
                [128, 64, 128],
                "SM90_64x64x16_F32F16F16_RS",
                Factor::Accumulators("Scores"),
                Factor::Shared("V"),
            ),
        ],
        reduces: vec![of_rows("row maximum", ReduceOp::Max), of_rows("row sum", ReduceOp::Sum)],
        roles: vec![
            Role { task: Task::Consume, threads: 256, registers: Some(240) },
            Role { task: Task::Produce, threads: 128, registers: Some(24) },
        ],
        cluster: [1, 1, 1],
        order: Order::numbered(&[("m", 128), ("n", 128)], Some(("k", 64))),
    }
}

#[test]
fn attention_is_proved() {
    let tiling = attention();
    assert_eq!(tiling.flaws(), []);
    // Three rings, each with its own barriers and bytes.
    let bytes: Vec<u64> = tiling.pipelines.iter().map(|ring| tiling.arrivals(ring).bytes.0).collect();
    assert_eq!((bytes, tiling.mbarriers()), (vec![16384; 3], 2 * (1 + 2 + 2)));
    // 64 scores and 32 outputs of a thread, and 32 registers of scores converted to halves.
    let counts = tiling.counts().expect("right copies");
    assert_eq!((counts.accumulators, tiling.registers()), (64 + 32, Ok(64 + 32 + 32)));
    assert_eq!(counts.products, 128 * 128 * 64 * 2);
    // O lies where Q, K and V do.
    assert_eq!(tiling.smem_bytes().expect("bytes"), Bytes((5 * 16384 + 80_u64).next_multiple_of(1024)));
    assert_eq!(tiling.reduces[0].shuffles(&tiling), Ok(2), "a row is in four lanes");
    let ty = |name: &str| tiling.aliases().into_iter().find(|alias| alias.name == name).map(|alias| alias.ty);
    assert_eq!(ty("TileS").as_deref(), Some("Shape<_128,_128>"));
    assert!(ty("Output").expect("an MMA").contains("_RS<GMMA::Major::K,GMMA::Major::MN>"));
}

/// Keys in pages of `page`, of which a step of 128 has boxes of `lines`.
fn in_pages(page: i64, lines: i64) -> impl Fn(&mut Tiling) {
    move |t| {
        t.copies[1].engine = Engine::Tma { extents: [lines, 64], sharers: 1, rounds: false };
        let Place::Global(global) = &mut t.copies[1].from else { panic!("K comes from global memory") };
        global.page = page;
    }
}

#[test]
fn boxes_of_pages_fill_a_stage() {
    for (page, lines) in [(64, 64), (256, 128), (16, 16), (8, 8), (64, 32)] {
        assert_eq!(broken(attention(), in_pages(page, lines)), [], "{page} {lines}");
        let mut tiling = attention();
        in_pages(page, lines)(&mut tiling);
        // All boxes of a stage complete one barrier.
        let copy = &tiling.counts().expect("right copies").copies[1];
        assert_eq!((copy.instructions, tiling.arrivals(&tiling.pipelines[1]).bytes.0), ((128 / lines) as u64, 16384));
    }
    // A box across two pages, one that leaves lines out, and boxes without pages.
    assert_eq!(broken(attention(), in_pages(64, 128)), [Law::Box]);
    assert_eq!(broken(attention(), in_pages(96, 96)), [Law::CoversOnce]);
    assert_eq!(broken(attention(), in_pages(0, 64)), [Law::CoversOnce]);
    assert!(broken(attention(), in_pages(4, 4)).contains(&Law::Swizzle), "rows of 8 are exchanged together");
}

#[test]
fn what_breaks_attention_is_found() {
    // Rows of scores are in four lanes, and only there.
    assert_eq!(broken(attention(), |t| t.reduces[0].over.clear()), [Law::Reduces]);
    assert_eq!(broken(attention(), |t| t.reduces[1].mode = 0).first(), Some(&Law::Reduces));
    assert_eq!(broken(attention(), |t| t.reduces[1].of = Reduced::Accumulators("Sums")), [Law::Reduces]);
    // Scores of another shape, of another MMA, and in other threads.
    assert!(broken(attention(), |t| t.mmas[0].tile = [128, 64, 64]).contains(&Law::CoversOnce));
    assert!(broken(attention(), |t| t.mmas[1].a = Factor::Accumulators("Sums")).contains(&Law::CoversOnce));
    let turned = |t: &mut Tiling| t.mmas[0].atoms = "(2,1,1):(2,1,1)".parse().expect("a layout");
    assert!(!broken(attention(), turned).is_empty());
    // V lies along its heads, not along the keys; a ring that is filled in another way; K in two rings.
    assert!(broken(attention(), |t| t.mmas[1].b = Factor::Shared("K")).contains(&Law::CoversOnce));
    assert!(broken(attention(), |t| t.pipelines[2].completes = Completion::CpAsyncGroup).contains(&Law::Pipeline));
    assert!(broken(attention(), |t| t.pipelines[2].tensors.push("K")).contains(&Law::Pipeline));
    assert_eq!(broken(attention(), |t| t.pipelines[1].stages = 3), [Law::Pipeline]);
    // O over tensors that are still read; Q that is gone behind the mainloop, where O needs none of it.
    assert_eq!(broken(attention(), |t| t.smem[3].lives = Lives::Mainloop), [Law::Lifetime]);
    assert!(broken(attention(), |t| t.smem[0].lives = Lives::Epilogue).contains(&Law::Lifetime));
    // Accumulators of both MMAs in too few registers.
    let few = |t: &mut Tiling| t.roles[0].registers = Some(88);
    assert_eq!(broken(attention(), few), [Law::Registers]);
}
