//! Contract: the values that the kernels and texts this library follows are built on, each computed here.

use cute_layout::layout::{
    Class, IntTuple, Layout, LayoutError, Tiler, coalesce, complement, composition, composition_by,
    is_admissible_for_complement, is_bijective, make_layout_tv, make_ordered_layout, recast_layout, slice_and_offset,
    zipped_divide,
};

type Checked = Result<(), LayoutError>;

fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn values(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).map(|i| layout.at(i).unwrap_or_else(|error| panic!("{error}"))).collect()
}

#[test]
fn layout_function_of_the_text() {
    assert_eq!(values(&layout("(2,4):(2,2)")), [0, 2, 2, 4, 4, 6, 6, 8]);
}

#[test]
fn sorting_changes_the_function() {
    assert_eq!(values(&layout("(2,2):(3,1)")), [0, 3, 1, 4]);
    assert_eq!(values(&layout("(2,2):(1,3)")), [0, 1, 3, 4]);
}

#[test]
fn coalescing_drops_the_unit_mode() -> Checked {
    assert_eq!(coalesce(&layout("(2,1):(3,1)"))?.to_string(), "2:3");
    Ok(())
}

#[test]
fn complement_fills_sixteen() -> Checked {
    let a = layout("(2,4):(1,2)");
    let rest = complement(&a, &16.into())?;
    assert_eq!(rest.to_string(), "2:8");
    let both = Layout::from_modes([a, rest])?;
    assert_eq!(values(&both), (0..16).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn complement_gives_a_bijection_that_is_not_the_identity() -> Checked {
    let a = layout("(2,4):(2,4)");
    let both = Layout::from_modes([a.clone(), complement(&a, &32.into())?])?;
    let expected = [
        0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, 16, 18, 20, 22, 24, 26, 28, 30, 17, 19, 21, 23, 25, 27,
        29, 31,
    ];
    assert_eq!(values(&both), expected);
    assert!(is_admissible_for_complement(&a, 32).is_ok() && is_bijective(&both)?);
    Ok(())
}

#[test]
fn admissibility_has_a_reason() {
    assert!(is_admissible_for_complement(&layout("(2,4):(1,2)"), 16).is_ok());
    // The second stride must be a multiple of what the first mode covers, and the size of what all cover.
    for (text, size, reason) in [("(2,4):(1,3)", 24, "3 mod 2 = 1"), ("(2,4):(1,2)", 20, "20 mod 8 = 4")] {
        let Err(error) = is_admissible_for_complement(&layout(text), size) else { panic!("{text} in {size}") };
        assert!(error.what_was_found().contains(reason), "{error}");
    }
}

#[test]
fn volta_quad_pair_layouts() -> Checked {
    let threads = layout("(2,2,2):(1,16,4)");
    assert_eq!(values(&threads), [0, 1, 16, 17, 4, 5, 20, 21]);
    let elements = layout("(2,2,2):(8,2,32)");
    assert_eq!(values(&elements), [0, 8, 2, 10, 32, 40, 34, 42]);
    let tv = Layout::from_modes([threads, elements])?;
    assert_eq!(tv.to_string(), "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))");
    let mut all = values(&tv);
    all.sort_unstable();
    assert_eq!(all, (0..64).collect::<Vec<_>>(), "each element of the 8x8 tile belongs to one thread and value");
    Ok(())
}

#[test]
fn tv_layout_of_the_elementwise_kernel() -> Checked {
    let (tiler, tv) = make_layout_tv(&layout("(4,32):(32,1)"), &layout("(4,8):(8,1)"))?;
    assert_eq!((tiler.to_string(), tv.to_string()), ("(16,256)".into(), "((32,4),(8,4)):((128,4),(16,1))".into()));
    let partitioned = composition(&layout("(16,256):(512,1)"), &tv)?;
    assert_eq!(partitioned.to_string(), "((32,4),(8,4)):((8,2048),(1,512))");
    Ok(())
}

#[test]
fn tv_layout_of_sixteen_byte_vectors() -> Checked {
    let bytes = layout("(16,16):(16,1)");
    let (tiler, tv) = make_layout_tv(&layout("(4,64):(64,1)"), &recast_layout(&bytes, 8, 16)?)?;
    assert_eq!((tiler.to_string(), tv.to_string()), ("(64,512)".into(), "((64,4),(8,16)):((512,16),(64,1))".into()));
    Ok(())
}

#[test]
fn tiles_of_a_row_major_matrix() -> Checked {
    let result = zipped_divide(&layout("(2048,2048):(2048,1)"), &IntTuple::from((1, 8)).into())?;
    assert_eq!(result.to_string(), "((1,8),(2048,256)):((0,1),(2048,8))");
    // The vector of the thread at (mi,ni) is eight neighbours of row mi, from column 8 * ni on.
    let (vector, offset) = slice_and_offset(&"(_,(3,5))".parse()?, &result)?;
    assert_eq!((vector.to_string(), offset.as_int()), ("((1,8)):((0,1))".into(), Some(3 * 2048 + 5 * 8)));
    assert_eq!(values(&vector), (0..8).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn tiles_for_thread_blocks() -> Checked {
    let tiled = zipped_divide(&layout("(256,512):(512,1)"), &IntTuple::from((16, 256)).into())?;
    assert_eq!(tiled.to_string(), "((16,256),(16,2)):((512,1),(8192,256))");
    let (tile, offset) = slice_and_offset(&"((_,_),17)".parse()?, &tiled)?;
    assert_eq!((tile.to_string(), offset.as_int()), ("(16,256):(512,1)".into(), Some(8192 + 256)));
    let (_, tv) = make_layout_tv(&layout("(4,32):(32,1)"), &layout("(4,8):(8,1)"))?;
    let (fragment, _) = slice_and_offset(&"(5,_)".parse()?, &composition(&tile, &tv)?)?;
    assert_eq!(fragment.to_string(), "((8,4)):((1,512))");
    // Thread blocks in the order of rows: the second mode alone is composed with a transposition.
    let rest = IntTuple::from((2, 16));
    let remap = make_ordered_layout(&rest, &(1, 0).into())?;
    assert_eq!(remap.to_string(), "(2,16):(16,1)");
    let remapped = composition_by(&tiled, &Tiler::Tuple(vec![Tiler::Shape(IntTuple::any()), remap.into()]))?;
    assert_eq!(remapped.to_string(), "((16,256),(2,16)):((512,1),(256,8192))");
    Ok(())
}

#[test]
fn the_threads_of_a_quad_pair_as_a_grid() {
    assert_eq!(values(&layout("(2,2,2):(1,4,2)")), [0, 1, 4, 5, 2, 3, 6, 7]);
}

#[test]
fn what_cute_accepts_and_gets_wrong_is_refused() {
    for (a, b) in [
        ("(4,2):(1,100)", "(2,2):(1,3)"),
        ("(6,6,2):(2,16,1)", "(3,4):(2,3)"),
        ("(4,6,8):(2,3,5)", "6:3"),
        ("(6,2):(1,7)", "4:4"),
        ("(3,(4,2),4):(4,(1,8),12)", "(4,2):(3,6)"),
    ] {
        let refused = composition(&layout(a), &layout(b));
        let Err(error) = refused else { panic!("{a} o {b} was accepted: {refused:?}") };
        assert!(error.what_cute_does().starts_with("accepts, and is wrong"), "{error}");
    }
}

#[test]
fn what_cute_refuses_without_need_is_accepted() -> Checked {
    for (a, b, r) in [
        ("(4,4):(4,1)", "2:6", "2:9"),
        ("(2,4):(1,3)", "1:5", "1:0"),
        ("(6,1):(1,12)", "2:5", "2:5"),
        ("(2,3,8):(3,16,2)", "2:16", "2:36"),
        ("(3,(4,1),6):(1,(16,5),3)", "((6,4),2):((4,768),96)", "(((3,2),4),2):(((17,3),192),24)"),
    ] {
        assert_eq!(composition(&layout(a), &layout(b))?.to_string(), r, "{a} o {b}");
    }
    Ok(())
}

#[test]
fn errors_say_where_and_why() {
    for (text, class) in [
        ("(4,8):(1,2,3)", Class::MismatchedRanks),
        ("():()", Class::Parse),
        ("(4,0):(1,4)", Class::Extent),
        ("(4,-2):(1,4)", Class::Extent),
        ("4.5:1", Class::Parse),
        ("4:1 x", Class::Parse),
        ("99999999999999999999:1", Class::Overflow),
        ("(4294967296,4294967296):(1,1)", Class::Overflow),
        ("(4,(8):(1,4)", Class::Parse),
        ("", Class::Parse),
    ] {
        let Err(error) = text.parse::<Layout>() else { panic!("{text} was accepted") };
        assert_eq!(error.class(), class, "{text}: {error}");
    }
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let Err(error) = deep.parse::<IntTuple>() else { panic!("10,000 levels were accepted") };
    assert!(error.to_string().contains("position 65"), "{error}");
}
