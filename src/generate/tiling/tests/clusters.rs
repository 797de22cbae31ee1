//! Clusters, and what they break.

use super::*;

/// The same by two CTAs along N, which share A, and stored by way of shared memory: parts of (128,32) floats.
fn clustered() -> Tiling {
    let mut tiling = wgmma();
    tiling.cluster = [1, 2, 1];
    tiling.copies[0].engine = Engine::Tma { extents: [64, 64], sharers: 2, rounds: false };
    let layout = Layout::new(ints(&[128, 32, 2]), ints(&[32, 1, 4096])).expect("a layout");
    tiling.smem.push(SmemTensor {
        modes: "(PART_M,PART_N,BUFFERS)",
        dtype: DType::F32,
        swizzle: Swizzle::new(3, 2, 3).ok(),
        layout,
        ..smem("D", 128, Proxy::Async)
    });
    let stage = TileCopy {
        name: "StageD",
        tile: [128, 32],
        to: Place::Shared("D"),
        engine: Engine::Fragments(CopyOp::Universal(Bytes(8))),
        guard: Guard::None,
        ..store()
    };
    tiling.copies[1] = TileCopy {
        name: "TmaD",
        from: Place::Shared("D"),
        to: Place::Global(Global { align: Bytes(16), ..Global::matrix("A") }),
        engine: Engine::Tma { extents: [64, 32], sharers: 2, rounds: false },
        guard: Guard::TensorMap,
        completes: Completion::BulkGroup,
        ..stage.clone()
    };
    tiling.copies.push(stage);
    tiling.roles = vec![
        Role { task: Task::Consume, threads: 256, registers: Some(240) },
        Role { task: Task::Produce, threads: 128, registers: Some(24) },
    ];
    tiling.order.takes = Takes::Turns { teams: 1, stream_k: 0 };
    tiling
}

#[test]
fn clusters_share_boxes_and_parts_of_d_are_staged() {
    let tiling = clustered();
    assert_eq!(tiling.flaws(), []);
    assert_eq!((tiling.cluster_size(), tiling.stages(), tiling.launched_registers()), (2, 3, 168));
    // Two of the four stages of A and one part of D are 2 x 16 KiB; barriers behind D.
    assert_eq!(tiling.smem_bytes().expect("bytes"), Bytes(3 * 16384 + 2 * 16384 + 1024));
    let counts = tiling.counts().expect("right copies");
    assert_eq!((counts.in_flight, counts.copies[0].instructions), (Bytes(2 * 16384), 2));
    let ty = |name: &str| tiling.aliases().into_iter().find(|alias| alias.name == name).map(|alias| alias.ty);
    assert_eq!(
        ty("TmaA").as_deref(),
        Some("Tma<SM90_TMA_LOAD_MULTICAST, half_t, Stride<int64_t,_1>, SmemA, Shape<_128,_64>, _2>")
    );
    assert_eq!(
        ty("TmaD").as_deref(),
        Some("Tma<SM90_TMA_STORE, float, Stride<int64_t,_1>, SmemD, Shape<_128,_32>, _2>")
    );
    let stage = "TiledCopy<Copy_Atom<UniversalCopy<uint64_t>, float>, \
                 Layout<Shape<Shape<_4,_8,_8>,_2>,Stride<Stride<_64,_1,_8>,_256>>, \
                 Tile<Layout<Shape<_8,_8>,Stride<_1,_16>>,Layout<Shape<_4,_2>,Stride<_2,_1>>>>";
    assert_eq!(ty("StageD").as_deref(), Some(stage));
    let map = tiling.copies[1].tensor_map(&tiling.smem[1], 1 << 20, [1000, 70], 72, [1, 0]).expect("a tensor map");
    assert_eq!(map.to_string(), "f32 (70,1000):(1,288 B), box (32,64), swizzle 128 B");
    assert!(map.is_encodable());
    for broken in [
        TensorMapSpec { address: 8, ..map },
        TensorMapSpec { strides: [280, 0, 0, 0], ..map },
        TensorMapSpec { strides: [1 << 40, 0, 0, 0], ..map },
        TensorMapSpec { dims: [0, 1000, 1, 1, 1], ..map },
    ] {
        assert!(!broken.is_encodable(), "{broken}");
    }
}

#[test]
fn what_breaks_a_cluster_is_found() {
    // Nobody asks for the other half of A; a cluster that shares nothing; both halves twice.
    assert_eq!(broken(clustered(), |t| t.cluster = [1, 1, 1]), [Law::Roles]);
    assert_eq!(broken(clustered(), |t| t.cluster = [2, 1, 1]), [Law::Roles]);
    let whole = |t: &mut Tiling| t.copies[0].engine = Engine::Tma { extents: [128, 64], sharers: 1, rounds: false };
    assert_eq!(broken(clustered(), whole), [Law::Roles]);
    // More registers than there are, and none of a warpgroup.
    assert_eq!(broken(clustered(), |t| t.roles[1].registers = Some(40)), [Law::Roles]);
    assert_eq!(broken(clustered(), |t| t.roles[0].registers = None), [Law::Roles]);
    assert_eq!(broken(clustered(), |t| t.roles[1].registers = Some(20)), [Law::Roles]);
    // Parts that do not divide the tile, and a vector of more than a thread holds side by side.
    assert!(broken(clustered(), |t| t.copies[2].tile = [128, 48]).contains(&Law::CoversOnce));
    let wide = |t: &mut Tiling| t.copies[2].engine = Engine::Fragments(CopyOp::Universal(Bytes(16)));
    assert!(!broken(clustered(), wide).is_empty());
    // One warpgroup stores what two have written.
    let half = |t: &mut Tiling| t.copies[1].engine = Engine::Tma { extents: [64, 32], sharers: 1, rounds: false };
    assert_eq!(broken(clustered(), half), [Law::CoversOnce]);
    assert!(broken(clustered(), |t| t.smem[1].swizzle = Swizzle::new(2, 2, 3).ok()).contains(&Law::Box));
}

#[test]
fn barriers_wait_for_who_comes() {
    let arrivals = |tiling: &Tiling| {
        let Arrivals { full, bytes, empty, turn, parts } = tiling.arrivals(&tiling.pipelines[0]);
        (full, bytes.0, empty, turn, parts)
    };
    let mut tiling = clustered();
    // A and B of 16 KiB each, which eight warps read, A in both CTAs.
    let bytes: u64 = tiling.operands().map(|tensor| tensor.stage_bytes().0).sum();
    assert_eq!(arrivals(&tiling), (1, bytes, 16, 0, 0));
    let one = tiling.smem_bytes().expect("bytes");
    // Of four CTAs that compute a tile, eight warps of each of the three others.
    let parts = Tiling { cluster: [1, 2, 4], ..tiling.clone() };
    assert_eq!((arrivals(&parts), parts.mbarriers()), ((1, bytes, 16, 0, 24), 2 * 3 + 2));
    // Two teams have a warpgroup each; the MMA is of both.
    tiling.order.takes = Takes::Turns { teams: 2, stream_k: 0 };
    assert_eq!(arrivals(&tiling), (1, bytes, 8, 4, 0));
    assert_eq!(tiling.mbarriers(), 2 * 3 + 2);
    assert_eq!(tiling.smem_bytes().expect("bytes"), one, "two barriers more, in the same KiB");
    let flaw = tiling.flaws().into_iter().find(|flaw| flaw.law == Law::Roles).expect("a flaw");
    assert_eq!(
        (flaw.found.as_str(), flaw.required.as_str()),
        ("256 threads that compute tiles in 2 teams", "512: those of the MMA in each team",)
    );
}
