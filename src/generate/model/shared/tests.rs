mod sums;

use super::*;
use crate::diagnostic::Code;
use crate::model::banks::SharedOp;
use crate::units::Elements;

fn tile(element: u64, layout: &str) -> SharedTensor {
    SharedTensor::new("sA", Bytes(element), layout.parse().expect("a layout")).expect("a tensor")
}

/// One warp that touches element `index(lane, step)`, 4 bytes.
fn access(op: SharedOp, steps: i64, index: impl Fn(i64, i64) -> i64) -> WarpAccess {
    WarpAccess::new("access", op, Bytes(4), 32, steps, |thread, step| Some(index(thread, step)))
}

/// A tile of (rows,32) floats, written along rows and read with lanes down the columns.
fn transpose(rows: i64) -> SharedTensor {
    tile(4, &format!("({rows},32):(32,1)"))
        .with_access(access(SharedOp::Store, rows, |lane, step| step + rows * lane))
        .with_access(access(SharedOp::Load, rows, |lane, step| lane % rows + rows * (lane / rows + 32 / rows * step)))
}

#[test]
fn a_square_of_floats_wants_the_swizzle_of_the_textbook() {
    let best = transpose(32).proposals(100).expect("proposals");
    assert_eq!(best[0].to_string(), "Sw<5,0,5>");
    assert_eq!((best[0].extra, best[0].memory), (0, Bytes(4096)));
    // A column of padding does as well, and takes more memory.
    let padded = best.iter().find(|proposal| proposal.padding.is_some()).expect("a padding");
    assert_eq!((padded.to_string().as_str(), padded.extra), ("a stride of 33", 0));
    assert_eq!((padded.layout.to_string().as_str(), padded.memory), ("(32,32):(33,1)", Bytes(4 * (31 * 33 + 32))));
}

#[test]
fn paired_columns_want_another_swizzle_than_the_textbook_s() {
    let best = transpose(16).swizzles(1).expect("proposals");
    assert_eq!((best[0].to_string().as_str(), best[0].extra), ("Sw<4,1,4>", 0));
    let worst = |swizzle: &str| {
        let tile = transpose(16).with_swizzle(swizzle.parse().expect("a swizzle")).expect("legal");
        tile.analyze().expect("an analysis").accesses.iter().map(|access| access.worst).collect::<Vec<_>>()
    };
    assert_eq!((worst("Sw<4,0,5>"), worst("Sw<4,1,4>")), (vec![1, 2], vec![1, 1]));
}

#[test]
fn a_conflict_names_lanes_bank_and_words() {
    let found = transpose(32).analyze().expect("an analysis");
    assert_eq!(found.accesses[0].conflict, None);
    let load = &found.accesses[1];
    assert_eq!((load.requests, load.wavefronts, load.least, load.worst, load.extra()), (32, 1024, 32, 32, 992));
    let conflict = load.conflict.as_ref().expect("a conflict");
    assert_eq!((conflict.warp, conflict.step, conflict.bank), (0, 0, Some(0)));
    assert_eq!(conflict.lanes(), (0..32).collect::<Vec<_>>());
    assert_eq!(
        conflict.to_string(),
        "warp 0, step 0: 32 words of bank 0 at once: word 0 for lane 0; word 32 for lane 1; word 64 for lane 2; word 96 for \
         lane 3; and 28 more"
    );
    assert_eq!(load.to_string(), "access: 4 B a lane, 32 requests of 32.00 wavefronts (worst 32), least 1.00");
}

/// The A fragment of a matrix product: 4 x 8 lanes, 16 bytes each; 8 neighbours read the same.
#[test]
fn lanes_that_read_the_same_cost_nothing() {
    let load = |lane: fn(i64) -> i64| {
        let access = WarpAccess::new("load", SharedOp::Load, Bytes(16), 32, 8, |thread, step| {
            Some(4 * lane(thread) + 128 * step)
        });
        let found = tile(4, "(128,8):(1,128)").with_access(access).analyze().expect("an analysis");
        (found.accesses[0].worst, found.extra())
    };
    assert_eq!(load(|lane| lane / 8), (2, 0));
    assert_eq!(load(|lane| lane % 4), (4, 0));
}

/// A copy of rows of 64 floats into columns of 64, 16 bytes a lane: two rows for a warp.
fn copied(layout: &str, swizzle: Option<&str>) -> AccessReport {
    let copy = WarpAccess::copy(
        "copy",
        Bytes(16),
        32,
        4,
        |thread, step| Some(4 * (thread % 16) + 64 * (thread / 16 + 2 * step)),
        |thread, step| 16 * (thread % 16) + 4096 * (thread / 16 + 2 * step),
    );
    let tile = tile(4, layout).with_access(copy);
    let tile = match swizzle {
        Some(swizzle) => tile.with_swizzle(swizzle.parse().expect("a swizzle")).expect("legal"),
        None => tile,
    };
    tile.analyze().expect("an analysis").accesses.remove(0)
}

#[test]
fn a_copy_of_chunks_goes_through_swizzles_but_not_through_padding() {
    assert_eq!(copied("(64,8):(1,64)", None).wavefronts, 16);
    assert_eq!(copied("(64,8):(1,64)", Some("Sw<3,2,4>")).wavefronts, 16);
    let padded = copied("(64,8):(1,68)", None);
    assert!(padded.worst > 4, "{padded}");
    let conflict = padded.conflict.expect("a conflict");
    assert_eq!(conflict.bank, None);
    assert!(conflict.to_string().contains("passes over lines of 128 B: line 0 for lanes 0-7; "), "{conflict}");
}

#[test]
fn vectors_stay_whole_and_aligned() {
    // 16-byte stores along M, loads of 4 bytes along K.
    let threads = "(8,4):(1,8)".parse().expect("a layout");
    let store = WarpAccess::tiled("store", SharedOp::Store, Bytes(16), (32, 32), &threads, Elements(4), 0);
    let column = access(SharedOp::Load, 32, |lane, step| step + 32 * lane);
    let tile = tile(4, "(32,32):(1,32)").with_access(store).with_access(column);
    let all = tile.proposals(1000).expect("proposals");
    assert!(all.len() > 50);
    for proposal in &all {
        assert!(proposal.swizzle.is_none_or(|swizzle| swizzle.base() >= 2), "{proposal}");
        assert!(proposal.padding.is_none_or(|(_, pad)| pad.0 % 4 == 0), "{proposal}");
        // An analysis of the proposal finds the proposed counts.
        let same = SharedTensor { layout: proposal.layout.clone(), swizzle: proposal.swizzle, ..tile.clone() };
        let found = same.analyze().expect("legal");
        assert_eq!((found.extra(), found.memory), (proposal.extra, proposal.memory), "{proposal}");
    }
    let order = |proposal: &Proposal| (proposal.extra, proposal.memory);
    assert!(all.windows(2).all(|pair| order(&pair[0]) <= order(&pair[1])));
}

#[test]
fn larger_strides_grow_with_a_padded_one() {
    let stages = tile(4, "(16,8,3):(1,16,128)").with_access(access(SharedOp::Load, 1, |lane, _| lane % 8 * 16));
    let all = stages.proposals(200).expect("proposals");
    let padded = all.iter().find(|proposal| proposal.padding == Some((Elements(16), Elements(1)))).expect("padded");
    assert_eq!(padded.layout.to_string(), "(16,8,3):(1,17,136)");
}

#[test]
fn what_no_kernel_can_do_is_refused() {
    let layout = "(32,32):(32,1)";
    let codes = |tensor: SharedTensor| tensor.analyze().expect_err("refused");
    let outside = codes(tile(4, layout).with_access(access(SharedOp::Load, 1, |lane, _| 1000 + lane)));
    assert!(outside.found.contains("lane 24 of warp 0 in step 0 moves element 1024"), "{outside}");
    let wide = WarpAccess::new("load", SharedOp::Load, Bytes(16), 32, 1, |thread, _| Some(32 * thread));
    let unaligned = codes(tile(4, layout).with_access(wide));
    assert!(unaligned.found.contains("16 B at byte 4"), "{unaligned}");
    let huge = WarpAccess::new("load", SharedOp::Load, Bytes(32), 32, 1, |thread, _| Some(thread));
    assert!(codes(tile(4, layout).with_access(huge)).found.contains("32 B for each thread"));
    assert!(SharedTensor::new("sA", Bytes(3), layout.parse().expect("a layout")).is_err());
    assert!(SharedTensor::new("sA", Bytes(4), "(4,4):(4,-1)".parse().expect("a layout")).is_err());
    let swizzle = "Sw<5,0,5>".parse().expect("a swizzle");
    assert!(tile(4, "(24,32):(32,1)").with_swizzle(swizzle).is_err());
}

#[test]
fn threads_of_tiled_and_tv_layouts_agree() {
    // Thread t has elements 4 t to 4 t + 3 of a column of 128.
    let threads = "(32,2):(1,32)".parse().expect("a layout");
    let tiled = WarpAccess::tiled("a", SharedOp::Store, Bytes(16), (128, 4), &threads, Elements(4), 0);
    let tv = "(64,(4,2)):(4,(1,256))".parse().expect("a layout");
    let tv = WarpAccess::tv("a", SharedOp::Store, Bytes(16), &tv, Elements(4));
    assert_eq!(tiled, tv);
    assert_eq!(tiled.requests(), 4);
}

#[test]
fn the_widest_access_is_the_alignment_and_stages_keep_it() {
    let vectors = WarpAccess::new("load", SharedOp::Load, Bytes(16), 16, 8, |thread, k| Some(4 * thread + 64 * k));
    let tile = tile(4, "(64,8):(1,68)").with_access(access(SharedOp::Store, 16, |lane, step| lane + 32 * step));
    assert_eq!(tile.alignment(), Bytes(4));
    let tile = tile.with_access(vectors);
    assert_eq!(tile.alignment(), Bytes(16));
    let staged = |apart: u64| tile.clone().with_stages(Elements(apart)).analyze();
    let found = staged(544).expect("aligned");
    assert_eq!((found.alignment, found.stage), (Bytes(16), Some(Bytes(2176))));
    let refused = staged(541).expect_err("not aligned");
    assert_eq!((refused.code, refused.found.as_str()), (Code::VectorAlignment, "sA: stages that lie 2164 B apart"));
}
