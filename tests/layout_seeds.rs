//! Contract: the values that the kernels and texts this library follows are built on, each computed here.

use cutemplate::layout::{
    Class, IntTuple, Layout, LayoutError, coalesce, complement, composition, make_layout_tv, recast_layout,
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
    let mut sorted = values(&both);
    assert_eq!(&sorted[..10], [0, 2, 4, 6, 8, 10, 12, 14, 1, 3]);
    sorted.sort_unstable();
    assert_eq!(sorted, (0..32).collect::<Vec<_>>());
    Ok(())
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
    Ok(())
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
