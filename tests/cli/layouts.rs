//! Contract: what `cutemplate layout` says of accesses, modes and the spellings of others.

use expect_test::expect;

use crate::tool::{bad, good, text, tool};

/// Banks and sectors of thread-value layouts, with what collides; what is no access is refused.
#[test]
fn layout_access_gives_a_verdict() {
    let told = good(&["layout", "((8,4),8):((64,8),1)", "--access", "--element-bytes", "2"]);
    expect![[r#"
        ((8,4),8):((64,8),1)
        32 threads, 8 values of 2 B each: 1 access of 16 B
        shared load: 1 request, 32 wavefronts, 4 at least: 8.00 times what is needed
          warp 0, step 0: 8 words of bank 0 at once: word 0 for lane 0; word 32 for lane 1; word 64 for lane 2; word 96 for lane 3; and 4 more
        shared store: 1 request, 32 wavefronts, 4 at least: 8.00 times what is needed
          warp 0, step 0: 8 words of bank 0 at once: word 0 for lane 0; word 32 for lane 1; word 64 for lane 2; word 96 for lane 3; and 4 more
        global: 1 request, 16 sectors of 32 B for 512 B: 100 % of them used
    "#]].assert_eq(&told);
    let swizzled =
        good(&["layout", "Sw<3,3,3> o 0 o ((8,4),8):((64,8),1)", "--access", "--element-bytes", "2", "--json"]);
    expect![[r#"
        {"ok":"Sw<3,3,3> o 0 o ((8,4),8):((64,8),1)"}
        {"access":"shared load","least":4,"requests":1,"wavefronts":4}
        {"access":"shared store","least":4,"requests":1,"wavefronts":4}
        {"access":"global","bytes":512,"requests":1,"sectors":16}
    "#]]
    .assert_eq(&swizzled);
    bad(
        &["layout", "(32,8):(9,1)", "--access", "--vector", "4"],
        1,
        expect![[r#"
            error: access: Invalid argument
              layout:   (32,8):(9,1)
              found:    value 0 of thread 1 at offset 9
              required: vectors of 4 neighbours that begin at multiples of 4
              because:  one instruction moves what lies side by side and is aligned
        "#]],
    );
    bad(
        &["layout", "make_layout_tv((4,8):(8,1), (2,2):(2,1))", "--access"],
        1,
        expect![[r#"
        error: (8,16);((8,4),(2,2)):((16,2),(8,1)) is no access
          required: a layout, (thread,value) to offset
          help:     compose the tensor's layout with the thread-value layout: composition(TENSOR, get(make_layout_tv(..), 1))
    "#]],
    );
}

#[test]
fn layout_explains_mode_by_mode() {
    expect![[r#"
        composition((12,(4,8)):(59,(13,1)), [3:4,8:2])
        law: R(c) = A(B(c)) for every coordinate c of B, and B's modes are R's
          mode 0: 12:59 o 3:4
            A coalesced: 12:59   (the last mode has no bound)
            A's modes begin at the indices 1
            leaf 0 of B, 3:4: steps of 4 through A are 3:236
            = 3:236
          mode 1: (4,8):(13,1) o 8:2
            A coalesced: 4:13  8:1   (the last mode has no bound)
            A's modes begin at the indices 1, 4
            leaf 0 of B, 8:2: steps of 2 through A are (2,4):(26,1)
            = (2,4):(26,1)
        = (3,(2,4)):(236,(26,1))

        (3,(2,4)):(236,(26,1))
    "#]]
    .assert_eq(&good(&["layout", "composition((12,(4,8)):(59,(13,1)), [3:4,8:2])", "--explain"]));
    expect![[r#"
        coalesce((2,(1,6)):(1,(6,2)), (1,1))
        law: the same value at every index, in at most one level; with a profile, mode by mode
          the profile (1,1) has 2 modes: each is a layout of its own
          mode 0: 2:1
            flat: 2:1
            modes of extent 1 are dropped; s:d before t:e merges to s*t:d where s*d = e
            = 2:1
          mode 1: (1,6):(6,2)
            flat: 1:6  6:2
            modes of extent 1 are dropped; s:d before t:e merges to s*t:d where s*d = e
            = 6:2
        = (2,6):(1,2)

        (2,6):(1,2)
    "#]]
    .assert_eq(&good(&["layout", "coalesce((2,(1,6)):(1,(6,2)), (1,1))", "--explain"]));
}

/// Spellings of CuTe C++ and of Python are answered with those of here.
#[test]
fn layout_hints_at_cutes_spellings() {
    for (theirs, ours) in [
        ("slice((_,3), (4,8):(1,4))", "help:     the other way round here: slice((4,8):(1,4), (_,3))"),
        ("Layout((4,8),(1,4))", "help:     here that is written (4,8):(1,4)"),
        ("Layout<Shape<_4,_8>,Stride<_1,_4>>{}", "help:     here that is written (4,8):(1,4)"),
        ("Swizzle<3,0,3>", "help:     here that is written Sw<3,0,3>"),
        (
            "compose(Swizzle(3,0,3), Layout((8,8),(8,1)))",
            "help:     here that is written composition(Sw<3,0,3>, (8,8):(8,1))",
        ),
        ("make_layout((4,8), (1,4))", "help:     here that is written (4,8):(1,4)"),
    ] {
        let output = tool(&["layout", theirs]);
        let said = text(&output.stderr);
        assert!(said.lines().any(|line| line.trim() == ours), "{theirs}: {said}");
    }
}
