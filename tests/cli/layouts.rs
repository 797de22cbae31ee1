//! Contract: what `cutemplate layout` says of accesses, modes and the spellings of others.

use cutemplate::atom::{CopyAtom, MmaAtom, Operand};
use expect_test::expect;

use crate::tool::{bad, good, text, tool};
use crate::wrong_input::cases;

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
        error: (8,16);((8,4),(2,2)):((16,2),(8,1)) is not an access
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

/// The name of an atom shows who holds what; a name that is near one is not taken for a symbol.
#[test]
fn layout_shows_atoms() {
    expect![[r#"
        SM90_64x8x16_F32F16F16_SS
          shape     (64,8,16)   (M,N,K)
          types     D F32, A F16, B F16, C F32
          threads   128:1   (ThrID)
          A         (128,(64,16)):(0,(1,64))   (thread,value) to (m,k) of 64 x 16, read from shared memory
          B         (128,(8,16)):(0,(1,8))   (thread,value) to (n,k) of 8 x 16, read from shared memory
          C         ((4,8,4),(2,2,1)):((128,1,16),(64,8,512))   (thread,value) to (m,n) of 64 x 8
          source    cute/atom/mma_traits_sm90_gmma.hpp; PTX ISA, Register Fragments and Shared Memory Matrix Layouts of wgmma.mma_async.m64nNk
    "#]]
    .assert_eq(&good(&["layout", "SM90_64x8x16_F32F16F16_SS"]));
    expect![[r#"
        {"layout_tv":{"A":"(128,(64,16)):(0,(1,64))","B":"(128,(8,16)):(0,(1,8))","C":"((4,8,4),(2,2,1)):((128,1,16),(64,8,512))"},"ok":"SM90_64x8x16_F32F16F16_SS","shape_mnk":[64,8,16],"source":{"header":"cute/atom/mma_traits_sm90_gmma.hpp","ptx_isa":"Register Fragments and Shared Memory Matrix Layouts of wgmma.mma_async.m64nNk"},"thr_id":"128:1","types":{"A":"F16","B":"F16","C":"F32","D":"F32"}}
    "#]]
    .assert_eq(&good(&["layout", "SM90_64x8x16_F32F16F16_SS", "--json"]));
    expect![[r#"
        SM75_U32x4_LDSM_N
          values    of 16 bits
          threads   32:1   (ThrID)
          src       (32,8):(8,1)   (thread,value) to the offset that it reads
          dst       (32,(2,4)):(2,(1,64))   (thread,value) to the offset that it receives
          ref       (32,(2,4)):(2,(1,64))   the one that a tiled copy's layout is meant in
          source    cute/atom/copy_traits_sm75.hpp; PTX ISA, ldmatrix
    "#]]
    .assert_eq(&good(&["layout", "Copy_Atom<SM75_U32x4_LDSM_N,half_t>"]));
    expect![[r#"
        {"layout_tv":{"dst":"(1,128):(0,1)","ref":"(1,128):(0,1)","src":"(1,128):(0,1)"},"ok":"UniversalCopy<uint128_t>","source":{"header":"cute/atom/copy_traits.hpp","ptx_isa":"ld, st"},"thr_id":"1:0","value_bits":1}
    "#]]
    .assert_eq(&good(&["layout", "UniversalCopy<uint128_t>", "--json"]));
    bad(
        &["layout", "SM90_64x100x16_F32F16F16_SS"],
        1,
        expect![[r#"
            error: MMA_Atom: Invalid argument
              found:    `SM90_64x100x16_F32F16F16_SS`
              required: an atom of the table
              because:  its layouts are facts about an instruction and cannot be guessed from a name
              help:     near: SM90_64x64x16_F32F16F16_SS, SM90_64x64x16_F32F16F16_RS, SM90_64x64x16_F16F16F16_SS
        "#]],
    );
    bad(
        &["layout", "SM75_U32x4_LDSM"],
        1,
        expect![[r#"
            error: Copy_Atom: Invalid argument
              found:    `SM75_U32x4_LDSM`
              required: an atom of the table
              because:  its layouts are facts about an instruction and cannot be guessed from a name
              help:     near: SM75_U32x4_LDSM_N, SM75_U32x1_LDSM_N, SM75_U32x2_LDSM_N
        "#]],
    );
    bad(
        &["layout", "SM75_U32x4_LDSM_N", "--access"],
        1,
        expect![[r#"
            error: --access with the name of an atom
              required: a layout, or operations on layouts
              help:     give one of the atom's layouts, as `cutemplate layout NAME` prints them
        "#]],
    );
    bad(
        &["layout", "SM75_U32x4_LDSM_N", "--svg", "none.svg"],
        1,
        expect![[r#"
            error: there is no picture of SM75_U32x4_LDSM_N
              required: an MMA atom, or an expression
              help:     draw one of its layouts: cutemplate layout '(32,(32,4)):(32,(1,1024))' --svg FILE
        "#]],
    );
}

/// Every atom of the tables is shown: by its own name, with the layouts that the library has.
#[test]
fn layout_shows_every_atom() {
    for name in MmaAtom::names() {
        let atom = MmaAtom::named(&name).expect("a name of the table");
        let told = good(&["layout", &name]);
        let [m, n, k] = atom.shape_mnk();
        assert!(told.starts_with(&format!("{name}\n")) && told.contains(&format!("({m},{n},{k})")), "{told}");
        let json: serde_json::Value = serde_json::from_str(&good(&["layout", &name, "--json"])).expect("an object");
        for operand in Operand::ALL {
            let layout = atom.layout_tv(operand).to_string();
            assert!(told.contains(&layout), "{told}");
            assert_eq!(json["layout_tv"][operand.to_string()], *layout, "{json}");
        }
    }
    for name in CopyAtom::names() {
        let atom = CopyAtom::named(name, 1).expect("a name of the table");
        let told = good(&["layout", name]);
        for layout in [atom.src(), atom.dst(), atom.reference()] {
            assert!(told.contains(&layout.to_string()), "{told}");
        }
    }
}

/// A left inverse in a shape of one's choosing, with its derivation.
#[test]
fn layout_gives_another_shape() {
    expect![[r#"
        left_inverse((4,4):(4,1))
        law: layout(result(layout(i))) = layout(i)
          coalesced: 4:4  4:1
          values from 1 on, in steps of 1: index 4 a step
          values from 4 on, in steps of 4: index 1 a step
        = (4,4):(4,1)

        with_shape((4,4):(4,1), (8,2))
        law: result(i) = layout(i) for every index i of the shape, and the shape's modes are the result's
          the compact layout of the shape: (8,2):(1,8); the layout is composed with it
          A coalesced: 4:4  4:1   (the last mode has no bound)
          A's modes begin at the indices 1, 4
          leaf 0 of B, 8:1: steps of 1 through A are (4,2):(4,1)
          leaf 1 of B, 2:8: steps of 8 through A are 2:2
          together: the leaves must not carry into each other at those indices
        = ((4,2),2):((4,1),2)

        ((4,2),2):((4,1),2)
    "#]]
    .assert_eq(&good(&["layout", "with_shape(left_inverse((4,4):(4,1)), (8,2))", "--explain"]));
}

/// As the library and the line protocol say it: see `cute-layout/tests/algebra/input.rs`.
#[test]
fn input_that_is_none_is_told_with_class_and_position() {
    for (wrong, class, found) in cases() {
        let output = tool(&["layout", "--", &wrong]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(class) && told.contains(&found) && !told.contains("panicked"), "{told}");
    }
}
