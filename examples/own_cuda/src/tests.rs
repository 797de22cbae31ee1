//! The kernels on the executor: every element is right, and planted defects are found.

use cutemplate::artifact::{Artifact, Kind};
use cutemplate::dtype::f16;
use cutemplate::exec::{Error, Kernel};
use cutemplate::view::{Arguments, HostMemory, View, ViewLayout, ViewMut};

use super::kernels::{no_barrier, off_by_one, rope, stencil};

/// Small integers, so that every sum is exact.
fn integers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 7 % 13) as f32 - 6.0).collect()
}

type Args<'a, K> = Arguments<'a, K, HostMemory>;
/// What makes the arguments of a stencil: x, y, centre, side.
type Make<K> = for<'a> fn(View<'a, f32, HostMemory>, ViewMut<'a, f32, HostMemory>, f32, f32) -> Args<'a, K>;

/// A stencil on a grid whose rows and planes have gaps, compared with the definition.
fn run<K: Kind>(artifact: &Artifact<'_>, args: Make<K>) -> Result<(), Error> {
    let ([nz, ny, nx], [plane, row]) = ([3_i64, 7, 45], [7 * 48 + 5, 48]);
    let layout = ViewLayout::strided(&[nz, ny, nx], &[plane, row, 1]).expect("a layout");
    let x = integers((nz * plane) as usize);
    let mut y = vec![0.0_f32; x.len()];
    let point = |k: i64, j: i64, i: i64| {
        let inside = (0..nz).contains(&k) && (0..ny).contains(&j) && (0..nx).contains(&i);
        if inside { f64::from(x[(k * plane + j * row + i) as usize]) } else { 0.0 }
    };
    let views = (View::host_strided(&x, layout), ViewMut::host_strided(&mut y, layout));
    Kernel::<K>::load(artifact)?.check_against(args(views.0, views.1, -6.0, 1.0), |_, at| {
        let (k, j, i) = (at[0], at[1], at[2]);
        let sides = point(k - 1, j, i) + point(k + 1, j, i) + point(k, j - 1, i) + point(k, j + 1, i);
        (sides + point(k, j, i - 1) + point(k, j, i + 1) - 6.0 * point(k, j, i), 0.0)
    })
}

#[test]
fn a_stencil_is_right_at_every_point() {
    run(&stencil::ARTIFACT, stencil::args).expect("right");
}

#[test]
fn a_comparison_that_is_off_by_one_is_found_with_its_point() {
    let found = run(&off_by_one::ARTIFACT, off_by_one::args).expect_err("found").to_string();
    assert!(found.contains("exec-out-of-bounds") && found.contains("of x = (3,7,45):(341,48,1)"), "{found}");
}

#[test]
fn a_barrier_that_is_missing_is_found_as_a_race() {
    let found = run(&no_barrier::ARTIFACT, no_barrier::args).expect_err("found").to_string();
    assert!(found.contains("exec-race") && found.contains("tile"), "{found}");
}

#[test]
fn pairs_are_turned_by_their_angles() {
    let (rows, columns) = (10_usize, 64_usize);
    let before: Vec<f16> = integers(rows * columns).into_iter().map(f16::from_f32).collect();
    let (cosines, sines) = (integers(rows * 32), integers(rows * 32 + 5));
    let mut x = before.clone();
    let matrix = |columns: i64| ViewLayout::matrix([10, columns], columns);
    let args = rope::args(
        ViewMut::host_strided(&mut x, matrix(64)),
        View::host_strided(&cosines, matrix(32)),
        View::host_strided(&sines, matrix(32)),
    );
    let kernel = Kernel::<rope::Entry>::load(&rope::ARTIFACT).expect("an artifact");
    kernel
        .check_against(args, |_, at| {
            let (row, j) = (at[0] as usize, at[1] as usize % 32);
            let of = |values: &[f32]| f64::from(values[row * 32 + j]);
            let x = |column: usize| f64::from(before[row * columns + column].to_f32());
            let (a, b) = (x(j), x(j + 32));
            let turned = if at[1] < 32 { a * of(&cosines) - b * of(&sines) } else { a * of(&sines) + b * of(&cosines) };
            (turned, 0.0)
        })
        .expect("right");
}

#[test]
fn views_that_the_declaration_does_not_allow_are_refused() {
    let (x, mut y) = (integers(3 * 4 * 5), vec![0.0_f32; 60]);
    let layout = |shape: [i64; 3]| ViewLayout::row_major(&shape).expect("a layout");
    let views = (View::host_strided(&x, layout([3, 4, 5])), ViewMut::host_strided(&mut y, layout([3, 5, 4])));
    let kernel = Kernel::<stencil::Entry>::load(&stencil::ARTIFACT).expect("an artifact");
    let refused = kernel.launch(stencil::args(views.0, views.1, 1.0, 1.0)).expect_err("refused").to_string();
    assert!(refused.contains("y.1 = 5, ny = 4") && refused.contains("required: y.1 = ny"), "{refused}");
}

/// `cargo test -p own_cuda -- --ignored`, where a GPU is.
#[test]
#[ignore = "needs a GPU"]
fn kernels_are_right_on_a_gpu() {
    use cutemplate::launch::{Gpu, Kernel, LaunchError};

    let gpu = Gpu::find().expect("a GPU");
    let stream = gpu.stream();
    // The stencil, by an unsafe function, and refused by the safe one below its type.
    let (shape, count) = ([5_i64, 9, 70], 5 * 9 * 70);
    let x = integers(count);
    let (mut on_gpu, mut on_cpu) = (vec![0.0_f32; count], vec![0.0_f32; count]);
    super::seven_points(&x, &mut on_gpu, shape, [-6.0, 1.0]).expect("runs");
    let layout = ViewLayout::row_major(&shape).expect("a layout");
    let args = stencil::args(View::host_strided(&x, layout), ViewMut::host_strided(&mut on_cpu, layout), -6.0, 1.0);
    super::exec::Kernel::<stencil::Entry>::load(&stencil::ARTIFACT).expect("PTX").launch(args).expect("runs");
    assert_eq!(on_gpu, on_cpu);
    let kernel = Kernel::<stencil::Entry>::load(&gpu, &stencil::ARTIFACT).expect("code");
    let mut views: [cutemplate::view::AnyView<'_, cutemplate::view::DeviceMemory>; 0] = [];
    let refused = kernel.any().launch_with(&stream, &mut views, &[]).expect_err("nobody vouches");
    assert!(matches!(refused, LaunchError::Unvouched { .. }), "{refused}");

    // The rotary embedding, for which build.rs vouches.
    let (rows, before) = (10, integers(640).into_iter().map(f16::from_f32).collect::<Vec<_>>());
    let (cosines, sines) = (integers(320), integers(325));
    let matrix = |columns: i64| ViewLayout::matrix([rows, columns], columns);
    let mut host = before.clone();
    let args = rope::args(
        ViewMut::host_strided(&mut host, matrix(64)),
        View::host_strided(&cosines, matrix(32)),
        View::host_strided(&sines, matrix(32)),
    );
    super::exec::Kernel::<rope::Entry>::load(&rope::ARTIFACT).expect("PTX").launch(args).expect("runs");
    let mut x = stream.clone_htod(&before).expect("memory");
    let [cosines, sines] = [cosines, sines].map(|angles| stream.clone_htod(&angles).expect("memory"));
    let args = rope::args(
        ViewMut::device_strided(&mut x, matrix(64)),
        View::device_strided(&cosines, matrix(32)),
        View::device_strided(&sines, matrix(32)),
    );
    Kernel::<rope::Entry>::load(&gpu, &rope::ARTIFACT).expect("code").launch(&stream, args).expect("launches");
    assert_eq!(stream.clone_dtoh(&x).expect("memory"), host);
}
