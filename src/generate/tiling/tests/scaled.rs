//! An 8-bit product with scales of blocks: each k-tile's sum is scaled as it moves to a second accumulator.

use super::*;

fn bytes_tile(name: &'static str, x: i64) -> SmemTensor {
    SmemTensor {
        dtype: DType::E4m3,
        swizzle: Swizzle::new(3, 4, 3).ok(),
        layout: Layout::new(ints(&[x, 128, 4]), ints(&[128, 1, 128 * x])).expect("a layout"),
        ..smem(name, x, Proxy::Async)
    }
}

/// (128,128,128) by two warpgroups; a scale for each row of A's k-tile comes with it, in the same stage.
fn scaled() -> Tiling {
    let load = |name, what, tensor, tile, dtype, extents| TileCopy {
        name,
        what,
        tile,
        dtype,
        from: Place::Global(Global { align: Bytes(16), multiple: 16, ..Global::matrix("A") }),
        to: Place::Shared(tensor),
        engine: Engine::Tma { extents, sharers: 1, rounds: false },
        guard: Guard::TensorMap,
        completes: Completion::Mbarrier,
        split: None,
    };
    let scales = SmemTensor {
        modes: "(1,BM,STAGES)",
        dtype: DType::F32,
        swizzle: None,
        layout: Layout::new(ints(&[1, 128, 4]), ints(&[128, 1, 128])).expect("a layout"),
        align: Bytes(128),
        ..smem("Scales", 1, Proxy::Async)
    };
    Tiling {
        tile: [128, 128, 128],
        smem: vec![bytes_tile("A", 128), bytes_tile("B", 128), scales],
        pipelines: vec![Pipeline {
            name: "mainloop",
            tensors: vec!["A", "B", "Scales"],
            stages: 4,
            completes: Completion::Mbarrier,
        }],
        copies: vec![
            load("TmaA", "copy of A", "A", [128, 128], DType::E4m3, [128, 128]),
            load("TmaB", "copy of B", "B", [128, 128], DType::E4m3, [128, 128]),
            load("TmaScales", "copy of the scales", "Scales", [1, 128], DType::F32, [1, 128]),
            TileCopy { tile: [128, 128], ..store() },
        ],
        mmas: vec![TileMma {
            name: "Mma",
            tiles: TILES,
            tile: [128, 128, 128],
            atom: "SM90_64x128x32_F32E4M3E4M3_SS_TN".to_owned(),
            atoms: make_layout(&ints(&[2, 1, 1])).expect("a layout"),
            permutation: None,
            a: Factor::Shared("A"),
            b: Factor::Shared("B"),
            promotion: Some(Promotion { every: 1, scales: vec!["Scales"] }),
        }],
        reduces: Vec::new(),
        roles: vec![
            Role { task: Task::Consume, threads: 256, registers: Some(232) },
            Role { task: Task::Produce, threads: 128, registers: Some(40) },
        ],
        cluster: [1, 1, 1],
        order: Order::numbered(&[("m", 128), ("n", 128)], Some(("k", 64))),
    }
}

#[test]
fn a_product_with_scales_is_proved() {
    let tiling = scaled();
    assert_eq!(tiling.flaws(), []);
    let arrivals = tiling.arrivals(&tiling.pipelines[0]);
    // The scales' 512 bytes arrive with the factors.
    assert_eq!((arrivals.full, arrivals.bytes, arrivals.empty), (1, Bytes(2 * 16384 + 512), 8));
    // 64 accumulators a thread, and 64 of the scaled sum.
    assert_eq!((tiling.registers(), tiling.mbarriers()), (Ok(128), 8));
    assert_eq!(tiling.smem_bytes().expect("bytes"), Bytes((4 * (2 * 16384 + 512) + 8 * 8_u64).next_multiple_of(1024)));
}

#[test]
fn what_breaks_a_product_with_scales_is_found() {
    // Scales of another k-tile: in a pipeline of their own, or in none.
    let own = |t: &mut Tiling| {
        t.pipelines[0].tensors.pop();
        let tensors = vec!["Scales"];
        t.pipelines.push(Pipeline { name: "scales", tensors, ..t.pipelines[0].clone() });
    };
    assert_eq!(broken(scaled(), own), [Law::Pipeline]);
    let without = |t: &mut Tiling| t.pipelines[0].tensors.truncate(2);
    assert!(broken(scaled(), without).contains(&Law::Pipeline));
    assert!(
        broken(scaled(), |t| t.mmas[0].promotion = Some(Promotion { every: 0, scales: vec![] })) == [Law::Pipeline]
    );
    // Nobody fills the scales; they complete otherwise; they have fewer stages than the factors.
    assert_eq!(broken(scaled(), |t| drop(t.copies.remove(2))), [Law::Pipeline]);
    assert_eq!(broken(scaled(), |t| t.copies[2].completes = Completion::BulkGroup), [Law::Pipeline]);
    let fewer = |t: &mut Tiling| {
        t.smem[2].layout = Layout::new(ints(&[1, 128, 2]), ints(&[128, 1, 128])).expect("a layout");
    };
    assert_eq!(broken(scaled(), fewer), [Law::Pipeline]);
    // Nobody produces; accumulators for which there are no registers; a factor that is not as large as the MMA's tile.
    let nobody = |t: &mut Tiling| t.roles[1].task = Task::Consume;
    assert!(broken(scaled(), nobody).contains(&Law::Pipeline));
    let few = |t: &mut Tiling| (t.roles[0].registers, t.roles[1].registers) = (Some(104), Some(24));
    assert_eq!(broken(scaled(), few), [Law::Registers]);
    assert!(broken(scaled(), |t| t.mmas[0].b = Factor::Shared("Scales")).contains(&Law::CoversOnce));
    // Two boxes for one tensor.
    assert!(broken(scaled(), |t| t.copies.push(t.copies[2].clone())).contains(&Law::Pipeline));
    // The scales lie where the epilogue's tensors do.
    assert!(broken(scaled(), |t| t.smem[2].lives = Lives::Epilogue).contains(&Law::Lifetime));
}
