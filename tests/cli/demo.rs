//! Contract: the demo shows a race by source line, and then a kernel that is right.

use expect_test::expect;

use crate::tool::good;

#[test]
fn the_demo_finds_the_race_and_verifies_its_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    let said = good(&["demo", "--out", path]);
    let race = said.split("reverse on the executor").nth(1).and_then(|rest| rest.split("\n\n").next());
    // Behind the time that it took.
    let race = race.and_then(|rest| rest.split_once('\n')).map_or("", |(_, finding)| finding);
    expect![[r#"
        error[exec-race]: two accesses of one place are not ordered
          found:    thread (160,0,0) of block (0,0,0), warp 5, 32 lanes 0xffffffff of reverse writes 4 B at byte 640 of shared _ZZ7reverseE4tile[1024 B]
                    at PTX line 42 (st.shared.f32), reverse.cu:6
                    thread (95,0,0) of block (0,0,0), warp 2 lane 31 read it before
                    at PTX line 48 (ld.shared.f32), reverse.cu:7
                    the first of 256 times, by 128 threads of 1 block
          required: a barrier of the block between accesses of one place by its warps (rule block-order)
          because:  warps of a block run in any order (PTX ISA, "bar, barrier")
          help:     add `__syncthreads()` (`bar.sync`) between the two lines"#]]
    .assert_eq(race);
    for part in
        ["reverse_with_barrier on the executor", "no findings", "kernel(elementwise_add_f16_params const& params)"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.contains("right: all 522753 elements"), "{said}");
}
