//! Single products: no tensor core, elements that move one by one.

use super::*;

/// (64,32,8) by single products: A turned on its way through registers into padded columns, read by vectors of a warp's threads.
fn fma() -> Tiling {
    let layout = |text: &str| text.parse::<Layout>().expect("a layout");
    let along = |text: &str| Tiler::Layout(layout(text));
    let (tile, dtype) = ([64, 8], DType::F32);
    let from = Place::Global(Global { align: Bytes(4), ..Global::matrix("A") });
    let turned = CopyOp::Through { load: Bytes(16), store: Bytes(4) };
    let (threads, values) = (layout("(16,2):(2,1)"), layout("(1,4):(4,1)"));
    let fill = TileCopy {
        name: "CopyA",
        what: "copy of A",
        tile,
        dtype,
        from,
        to: Place::Shared("A"),
        engine: Engine::Threads { op: turned, threads, values },
        guard: Guard::Elements,
        completes: Completion::Program,
        split: None,
    };
    let load = TileCopy {
        name: "LoadA",
        what: "load of A",
        from: Place::Shared("A"),
        to: Place::Fragments("Mma", Operand::A),
        engine: Engine::Fragments(CopyOp::Universal(Bytes(16))),
        guard: Guard::None,
        ..fill.clone()
    };
    let store = TileCopy {
        tile: [64, 32],
        engine: load.engine.clone(),
        from: Place::Fragments("Mma", Operand::C),
        to: from,
        ..store()
    };
    Tiling {
        tile: [64, 32, 8],
        smem: vec![SmemTensor {
            dtype,
            swizzle: None,
            layout: layout("(64,8):(1,68)"),
            align: Bytes(16),
            ..smem("A", 64, Proxy::Generic)
        }],
        pipelines: vec![ring(1, Completion::Program)],
        copies: vec![fill, load, TileCopy { guard: Guard::Elements, ..store }],
        mmas: vec![TileMma {
            name: "Mma",
            tiles: TILES,
            tile: [64, 32, 8],
            atom: "UniversalFMA<float>".to_owned(),
            atoms: layout("((2,2),(2,4),1):((2,16),(1,4),0)"),
            permutation: Some(Tiler::Tuple(vec![
                along("(4,4):(4,1)"),
                along("(8,4):(4,1)"),
                Tiler::Shape(IntTuple::int(1)),
            ])),
            a: Factor::Fragments,
            b: Factor::Fragments,
            promotion: None,
        }],
        reduces: Vec::new(),
        roles: vec![Role { task: Task::All, threads: 32, registers: None }],
        cluster: [1, 1, 1],
        order: Order::numbered(&[("m", 128), ("n", 128)], Some(("k", 64))),
    }
}

#[test]
fn single_products_are_read_from_the_same_layouts() {
    let tiling = fma();
    assert_eq!(tiling.flaws(), []);
    // 64 x 8 by 16 bytes a thread; a thread's 16 x 8 by vectors; 4 x 16 elements of D, vectors along N, of rows of 32 floats.
    let counts = tiling.counts().expect("right copies");
    let copies: Vec<(u64, u64, u64)> =
        counts.copies.iter().map(|copy| (copy.instructions, copy.width.0, copy.sectors)).collect();
    assert_eq!(copies, [(4, 16, 64), (32, 16, 0), (16, 16, 16 * 16)]);
    assert_eq!((counts.mmas, counts.accumulators), (64 * 32 * 8 / 32, 64));
    let shared = &tiling.shared().expect("right accesses")[0];
    let found: Vec<(u64, u64)> = shared.accesses.iter().map(|access| (access.bytes.0, access.requests)).collect();
    assert_eq!((found, shared.alignment), (vec![(4, 16), (16, 32)], Bytes(16)), "{shared}");
    assert_eq!(tiling.widest("A"), Ok(Bytes(16)));
    let mma = tiling.aliases().into_iter().find(|alias| alias.name == "Mma").expect("an MMA").ty;
    assert_eq!(
        mma,
        "TiledMMA<MMA_Atom<UniversalFMA<float>>, \
         Layout<Shape<Shape<_2,_2>,Shape<_2,_4>,_1>,Stride<Stride<_2,_16>,Stride<_1,_4>,_0>>, \
         Tile<Layout<Shape<_4,_4>,Stride<_4,_1>>,Layout<Shape<_8,_4>,Stride<_4,_1>>,_1>>"
    );
}

#[test]
fn what_breaks_single_products_is_found() {
    let columns = |text: &str| text.parse::<Layout>().expect("a layout");
    // Columns that begin anywhere tear the loads, and stores of 16 bytes what is turned.
    assert_eq!(broken(fma(), |t| t.smem[0].layout = columns("(64,8):(1,65)")), [Law::Aligned]);
    assert_eq!(broken(fma(), |t| t.smem[0].align = Bytes(4)), [Law::Aligned]);
    let wide = |t: &mut Tiling| {
        let Engine::Threads { op, .. } = &mut t.copies[0].engine else { unreachable!("a copy by threads") };
        *op = CopyOp::Through { load: Bytes(16), store: Bytes(16) };
    };
    assert_eq!(broken(fma(), wide), [Law::Contiguous]);
}

#[test]
fn loads_of_single_neighbours_are_made_one() {
    let single = |layout: &str, swizzle: Option<Swizzle>| {
        let mut tiling = fma();
        tiling.copies[1].engine = Engine::Fragments(CopyOp::Universal(Bytes(4)));
        tiling.smem[0].layout = layout.parse().expect("a layout");
        (tiling.smem[0].swizzle, tiling.smem[0].align) = (swizzle, tiling.widest("A").expect("accesses"));
        assert_eq!(tiling.flaws(), []);
        let shared = tiling.shared().expect("right accesses").remove(0);
        (shared.accesses[1].bytes.0, shared.accesses[1].requests, shared.alignment.0)
    };
    // As many as are aligned, in an array whose alignment is that of the text.
    assert_eq!(single("(64,8):(8,1)", None), (16, 32, 4));
    assert_eq!(single("(64,8):(10,1)", None), (8, 64, 4));
    assert_eq!(single("(64,8):(9,1)", None), (4, 128, 4));
    assert_eq!(single("(64,8):(8,1)", Swizzle::new(2, 3, 3).ok()), (4, 128, 4));
    assert_eq!(single("(64,8):(1,68)", None), (4, 128, 4));
}
