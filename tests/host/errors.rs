//! Contract: what cannot be compiled or launched is refused in the project's form, and a verdict reads as one.

#![cfg(feature = "host")]

use std::path::Path;

use crate::host_common::{Shape, Tensor, line, options, text, try_launch};
use cutemplate::emit::SourceFile;
use cutemplate::exec::Error;
use cutemplate::exec::cxx::{FailureKind, Mode, Options, Program, Source};

fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> (FailureKind, String) {
    match result {
        Err(Error::Failed(failure)) => (failure.kind, failure.to_string()),
        other => panic!("not refused: {other:?}"),
    }
}

fn compile(body: &str, options: &Options) -> Result<Program, Error> {
    let files = [SourceFile { name: "bad.cu".into(), text: body.into() }];
    Program::compile(Source::new("bad", &files), Mode::Plain, options)
}

const FILL: &str = "struct Params { float *c; };
    extern \"C\" __global__ void bad(Params const p) { p.c[threadIdx.x] = 1.0f; }";

#[test]
fn text_that_does_not_compile_comes_with_the_compilers_own_words() {
    let (kind, message) = refused(compile("extern \"C\" __global__ void bad(int x) { return y; }", &options()));
    assert_eq!(kind, FailureKind::Compile);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "error[host-compile]: the kernel does not compile for the CPU");
    assert!(message.contains("bad.cu:1:48: error:"), "{message}");
    let from_required = lines.iter().position(|l| l.starts_with("  required:")).expect("a field");
    assert_eq!(
        lines[from_required + 1..],
        [
            "  because:  the executor compiles the kernel's text as it stands, against the CUTLASS headers",
            "  help:     correct the line that is named; what only nvcc accepts (PTX, textures, tensor cores) does not run \
             on the CPU",
        ]
    );
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let mut options = options();
    let file = tempfile::NamedTempFile::new().expect("a file");
    options.cache = file.path().join("below");
    let (kind, message) = refused(compile(FILL, &options));
    assert_eq!(kind, FailureKind::Cache);
    assert!(
        message.starts_with("error[host-cache]: cannot make a part of the cache of compiled kernels\n  found:    ")
    );
    assert!(message.contains("set CUTEMPLATE_CACHE_DIR to another directory"), "{message}");
}

#[test]
fn a_compiler_that_is_not_there_is_a_failure() {
    let mut options = options();
    options.toolchain.cxx.path = "/nowhere/c++".into();
    let dir = tempfile::tempdir().expect("a directory");
    options.cache = dir.path().to_path_buf();
    let (kind, message) = refused(compile(FILL, &options));
    assert_eq!(kind, FailureKind::Compile);
    assert!(message.contains("No such file or directory"), "{message}");
}

/// One cache for both, since each has to compile the runtime too.
#[test]
fn a_program_is_compiled_once_and_never_runs_where_it_is_not_what_was_compiled() {
    use std::os::unix::fs::symlink;

    let mut options = options();
    let dir = tempfile::tempdir().expect("a directory");
    options.cache = dir.path().to_path_buf();
    // A compiler that can be taken away, so that what is looked for again and not found shows.
    let link = dir.path().join("c++");
    symlink(&options.toolchain.cxx.path, &link).expect("ours");
    let real = std::mem::replace(&mut options.toolchain.cxx.path, link);
    is_found_again(&options);
    never_runs_changed(&options, &real);
}

fn is_found_again(options: &Options) {
    let first = compile(FILL, options).expect("compiles");
    // Without a compiler it is still found: nothing is compiled. Another text, or another mode, would be.
    let entries = || {
        let list = |room: &str| std::fs::read_dir(options.cache.join(room)).expect("there");
        let paths = ["host", "runtime"].iter().flat_map(|room| list(room)).map(|e| e.expect("entry").path());
        let mut paths: Vec<_> = paths.filter(|path| !path.ends_with("locks")).collect();
        paths.sort();
        paths
    };
    let before = entries();
    assert_eq!(before.len(), 2, "the program and the runtime, nothing left over: {before:?}");
    assert_eq!(compile(FILL, options).expect("found").path(), first.path());
    assert_eq!(entries(), before);
    let other = compile(&FILL.replace("1.0f", "2.0f"), options).expect("compiles");
    assert_ne!(other.path(), first.path());
    assert_eq!(entries().len(), 3, "the runtime is shared");
}

/// With the real compiler, to which that of the options is a link.
fn never_runs_changed(options: &Options, real: &Path) {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let link = &options.toolchain.cxx.path;
    let give = || symlink(real, link).expect("ours");
    let take_away = || std::fs::remove_file(link).expect("ours");
    let ran = options.cache.join("ran");
    let foreign = format!("#!/bin/sh\n: >{}\n", ran.display());
    let text = FILL.replace("bad", "fill");
    let files = [SourceFile { name: "fill.cu".into(), text: text.clone() }];
    let look_for = || Program::compile(Source::new("fill", &files), Mode::Plain, options);
    let compile = || look_for().expect("compiles");
    let is_not_taken = || {
        take_away();
        let (kind, message) = refused(look_for());
        assert_eq!(kind, FailureKind::Compile);
        assert!(message.contains("No such file or directory"), "{message}");
        give();
    };
    let launch = |program: &Program| {
        let mut c = Tensor::write("C", 1, 4);
        try_launch(&program.clone().into(), &line(1, 4), std::slice::from_mut(&mut c)).map(|_| ())
    };
    let first = compile();
    launch(&first).expect("runs");
    let good = std::fs::read(first.path()).expect("there");
    let writable = |mode| std::fs::set_permissions(first.path(), PermissionsExt::from_mode(mode)).expect("ours");
    for harm in [foreign.as_bytes(), &good[..good.len() / 2], &good[..good.len() - 1], b""] {
        writable(0o755);
        std::fs::write(first.path(), harm).expect("damaged");
        // Found earlier by this process, it is refused; looked for again, it would be compiled again.
        let (kind, message) = refused(launch(&first));
        assert_eq!(kind, FailureKind::Cache);
        assert!(message.contains("is not what was compiled"), "{message}");
        is_not_taken();
    }
    launch(&compile()).expect("runs");
    assert_eq!(std::fs::read(first.path()).expect("there"), good);
    // What others can write is not trusted, whatever it is.
    writable(0o777);
    is_not_taken();
    launch(&compile()).expect("runs");
    let mode = std::fs::metadata(first.path()).expect("there").permissions().mode();
    assert_eq!(mode & 0o022, 0, "{mode:o}");
    assert!(!ran.exists(), "a foreign program ran");
}

#[test]
fn a_launch_that_does_not_fit_is_refused_before_anything_runs() {
    let program = text("fill", &FILL.replace("bad", "fill")).compile(Mode::Plain);
    let launch = |shape: &Shape<'_>, matrices: &mut [Tensor]| refused(try_launch(&program, shape, matrices));
    let no_job = |shape: &Shape<'_>, matrices: &mut [Tensor]| match try_launch(&program, shape, matrices) {
        Err(Error::Job(refused)) => refused.to_string(),
        other => panic!("no refusal of the job: {other:?}"),
    };
    for (grid, block) in [([0, 1, 1], [1, 1, 1]), ([1, 1, 1], [32, 33, 1]), ([1 << 16, 1 << 16, 1], [1, 1, 1])] {
        let message = no_job(&Shape { entry: 0, grid, block, smem: 0, ints: &[] }, &mut [Tensor::write("C", 1, 1)]);
        assert!(message.starts_with("error[exec-launch]: the grid or the block cannot be run"), "{message}");
    }
    let mut small = Tensor::write("C", 2, 2);
    small.rows = 3;
    let message = no_job(&line(1, 1), &mut [small]);
    assert!(message.starts_with("error[exec-launch]: C does not fit the launch"), "{message}");
    // Parameters of another size than the kernel's, and more shared memory than there is.
    let (kind, message) = launch(&Shape { ints: &[1], ..line(1, 1) }, &mut [Tensor::write("C", 1, 1)]);
    assert_eq!(kind, FailureKind::Run);
    assert!(message.contains("the parameter struct of the kernel has another size than the job's"), "{message}");
    let (_, message) = launch(&Shape { smem: 300 << 10, ..line(1, 1) }, &mut [Tensor::write("C", 1, 1)]);
    assert!(message.contains("more dynamic shared memory than a block can have"), "{message}");
}

#[test]
fn buffers_must_be_the_memory_of_their_views() {
    use cutemplate::dtype::DType;
    use cutemplate::exec::{Buffer, Job, Report};
    use cutemplate::plan::{BoundTensor, EntryLaunch};
    use cutemplate::units::Elements;
    use cutemplate::view::{Access, ViewLayout, ViewRef};

    let program = text("fill", &FILL.replace("bad", "fill")).compile(Mode::Plain);
    let no_job = |result: Result<_, Error>| result.map(|_: Report| ()).expect_err("refused").to_string();
    let mut data = [0_u8; 64];
    let ptr = data.as_ptr() as u64;
    let view = ViewRef {
        dtype: DType::F16,
        ptr,
        available: Elements(8),
        layout: ViewLayout::matrix([1, 8], 8),
        access: Access::Write,
    };
    let tensors = [BoundTensor { name: "C", view, param_offset: 0 }];
    let launches = [EntryLaunch { entry: 0, grid: [1; 3], block: [1; 3], dynamic_smem: 0, overlaps: false }];
    let job = Job { launches: &launches, params: &[0; 8], tensors: &tensors, workspace: None, tensor_maps: &[] };
    let message = no_job(program.run(&job, &mut []));
    assert!(message.contains("found:    0 buffers\n  required: 1 buffers, one for each tensor"), "{message}");
    let message = no_job(program.run(&job, &mut [Buffer::Read(&data[..16])]));
    assert!(message.contains("found:    Buffer::Read\n  required: Buffer::Write"), "{message}");
    let message = no_job(program.run(&job, &mut [Buffer::Write(&mut data[..14])]));
    let want = format!("found:    14 B at {ptr:#x}\n  required: 8 elements of f16 at {ptr:#x}");
    assert!(message.contains(&want), "{message}");
}

#[test]
fn a_verdict_reads_as_a_diagnostic() {
    let kernel = text(
        "rows",
        "struct Params { float *c; int ld; };
extern \"C\" __global__ void rows(Params const p) {
  p.c[blockIdx.x * p.ld + threadIdx.x] = 1.0f;
}",
    );
    let shape = Shape { ints: &[4], ..line(2, 5) };
    let report = kernel.run(Mode::Races, &shape, &mut [Tensor::write("C", 2, 4)]);
    assert_eq!(
        report.to_string(),
        "error[exec-race]: two accesses of one place are not ordered\n  \
         found:    thread (0,0,0) of block (1,0,0) writes 4 B at C(1,0) of C = (2,4):(4,1), at rows.cu:3\n            \
         thread (4,0,0) of block (0,0,0) wrote it before, at rows.cu:3\n  \
         required: a barrier, or a fence with an atomic, between two accesses of one place of which one is a write (rule ordered)\n  \
         because:  threads and blocks run in any order (PTX ISA, \"Conflict and Data-races\")\n  \
         help:     order the two lines, or give each element one thread\n\
         error[exec-out-of-bounds]: the kernel accesses memory that is not its own\n  \
         found:    thread (4,0,0) of block (1,0,0) writes 4 B at C(2,0) of C = (2,4):(4,1), at rows.cu:3\n  \
         required: an element of a tensor, or a byte of an allocation or a variable (rule in-bounds)\n  \
         because:  a GPU reads or corrupts whatever lies there, or faults\n  \
         help:     check the predicate of the access and the stride of the leading dimension"
    );
}
