//! What the executor's tests share: kernels as text, matrices with room, one launch.
#![allow(dead_code, reason = "each test file uses a part of it")]

mod texts;

use std::num::NonZero;
use std::sync::LazyLock;
use std::time::Duration;

use cutemplate::dtype::DType;
use cutemplate::emit::SourceFile;
use cutemplate::exec::cxx::{Mode, Options, Program, Source};
use cutemplate::exec::{Buffer, Finding, Job, Report, Target, Who};
use cutemplate::plan::{BoundTensor, EntryLaunch};
use cutemplate::units::Elements;
use cutemplate::view::{Access, ViewLayout, ViewRef};
pub(crate) use texts::{Part, Texts};

static OPTIONS: LazyLock<Options> = LazyLock::new(|| {
    let mut options = Options::from_env(&mut ()).expect("a C++ compiler, CUTLASS and the CUDA headers");
    options.workers = NonZero::new(2).expect("two");
    options.time_limit = Duration::from_secs(60);
    options
});

pub(crate) fn options() -> Options {
    OPTIONS.clone()
}

/// A matrix `(M,N):(ld,1)` of f32 with `before` elements ahead of it and `after` behind it in the same allocation.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: &'static str,
    pub(crate) data: Vec<f32>,
    pub(crate) before: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) ld: usize,
    pub(crate) access: Access,
}

impl Tensor {
    pub(crate) fn read(name: &'static str, rows: usize, cols: usize, f: impl Fn(usize, usize) -> f32) -> Tensor {
        let data = (0..rows * cols).map(|i| f(i / cols, i % cols)).collect();
        Tensor { name, data, before: 0, rows, cols, ld: cols, access: Access::Read }
    }

    pub(crate) fn write(name: &'static str, rows: usize, cols: usize) -> Tensor {
        let data = vec![f32::NAN; rows * cols];
        Tensor { name, data, before: 0, rows, cols, ld: cols, access: Access::Write }
    }

    /// The same matrix with a leading dimension, and extra elements ahead and behind, all filled with `filler`.
    pub(crate) fn padded(self, ld: usize, before: usize, after: usize, filler: f32) -> Tensor {
        let mut data = vec![filler; before + (self.rows - 1) * ld + self.cols + after];
        for i in 0..self.rows {
            for j in 0..self.cols {
                data[before + i * ld + j] = self.data[i * self.cols + j];
            }
        }
        Tensor { data, before, ld, ..self }
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> f32 {
        self.data[self.before + i * self.ld + j]
    }

    pub(crate) fn view(&self) -> ViewRef {
        ViewRef {
            dtype: DType::F32,
            ptr: self.data[self.before..].as_ptr() as u64,
            available: Elements((self.data.len() - self.before) as u64),
            layout: ViewLayout::matrix([self.rows, self.cols].map(|e| e as i64), self.ld as i64),
            access: self.access,
        }
    }

    pub(crate) fn buffer(&mut self) -> Buffer<'_> {
        let elements = &mut self.data[self.before..];
        // SAFETY: any four bytes are an f32, and f32 has no padding.
        let bytes = unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) };
        match self.access {
            Access::Read => Buffer::Read(bytes),
            Access::Write => Buffer::Write(bytes),
        }
    }
}

/// Entry, grid, block, dynamic shared memory; the parameter struct is the matrices' addresses, then these integers.
#[derive(Clone, Debug)]
pub(crate) struct Shape<'a> {
    pub(crate) entry: usize,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) smem: u32,
    pub(crate) ints: &'a [i32],
}

pub(crate) fn line(blocks: u32, threads: u32) -> Shape<'static> {
    Shape { entry: 0, grid: [blocks, 1, 1], block: [threads, 1, 1], smem: 0, ints: &[] }
}

/// A kernel as a test writes it: `<name>.cu`.
#[derive(Clone)]
pub(crate) struct Text {
    pub(crate) name: &'static str,
    pub(crate) entries: Vec<String>,
    pub(crate) text: String,
    /// The texts that it is compiled with; none where it is compiled alone.
    pub(crate) among: Option<&'static Texts>,
}

pub(crate) fn text(name: &'static str, text: &str) -> Text {
    Text { name, entries: vec![name.to_owned()], text: text.to_owned(), among: None }
}

impl Text {
    /// The same kernel with one thing changed.
    pub(crate) fn with(&self, from: &str, to: &str) -> Text {
        assert_eq!(self.text.matches(from).count(), 1, "{from} occurs once");
        Text { text: self.text.replacen(from, to, 1), ..self.clone() }
    }

    /// The same text with a further entry.
    pub(crate) fn and(mut self, entry: &str) -> Text {
        self.entries.push(entry.to_owned());
        self
    }

    /// The number of the line that holds `what`, from 1.
    pub(crate) fn line_of(&self, what: &str) -> u32 {
        let at = self.text.find(what).unwrap_or_else(|| panic!("no {what}"));
        self.text[..at].matches('\n').count() as u32 + 1
    }

    pub(crate) fn compile(&self, mode: Mode) -> Part {
        self.among.map_or_else(|| self.alone(mode, &OPTIONS), |texts| texts.part(self, mode, None))
    }

    pub(crate) fn compile_with(&self, mode: Mode, options: &Options) -> Part {
        self.among.map_or_else(|| self.alone(mode, options), |texts| texts.part(self, mode, Some(options)))
    }

    fn alone(&self, mode: Mode, options: &Options) -> Part {
        let files = [SourceFile { name: format!("{}.cu", self.name), text: self.text.clone() }];
        match Program::compile(Source { name: self.name, entries: &self.entries, files: &files }, mode, options) {
            Ok(program) => program.into(),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn run(&self, mode: Mode, shape: &Shape<'_>, matrices: &mut [Tensor]) -> Report {
        launch(&self.compile(mode), shape, matrices)
    }

    /// Runs it and insists on a clean report.
    pub(crate) fn run_clean(&self, mode: Mode, shape: &Shape<'_>, matrices: &mut [Tensor]) {
        let report = self.run(mode, shape, matrices);
        assert!(report.is_clean(), "{} in mode {mode}:\n{report}\n{}", self.name, report.printed);
    }
}

pub(crate) fn launch(program: &Part, shape: &Shape<'_>, matrices: &mut [Tensor]) -> Report {
    match try_launch(program, shape, matrices) {
        Ok(report) => report,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn try_launch(
    program: &Part,
    shape: &Shape<'_>,
    matrices: &mut [Tensor],
) -> Result<Report, cutemplate::exec::Error> {
    let mut params: Vec<u8> = vec![0; 8 * matrices.len()];
    params.extend(shape.ints.iter().flat_map(|i| i.to_ne_bytes()));
    params.resize(params.len().next_multiple_of(8), 0);
    let tensors: Vec<BoundTensor> = matrices
        .iter()
        .enumerate()
        .map(|(i, m)| BoundTensor { name: m.name, view: m.view(), param_offset: 8 * i })
        .collect();
    let launches = [EntryLaunch {
        entry: shape.entry,
        grid: shape.grid,
        block: shape.block,
        dynamic_smem: shape.smem,
        overlaps: false,
    }];
    let job = Job { launches: &launches, params: &params, tensors: &tensors, workspace: None, tensor_maps: &[] };
    let mut buffers: Vec<Buffer<'_>> = matrices.iter_mut().map(Tensor::buffer).collect();
    program.run(&job, &mut buffers)
}

/// The only finding of a report.
pub(crate) fn only(report: &Report) -> &Finding {
    assert_eq!(report.findings.len(), 1, "one finding:\n{report}\n{}", report.printed);
    &report.findings[0]
}

/// Tensor and coordinate of a finding.
pub(crate) fn element(finding: &Finding) -> (&'static str, (i64, i64)) {
    match &finding.target {
        Some(Target::Tensor { name, coordinate, .. }) => (name, (coordinate[0], coordinate[1])),
        other => panic!("no element: {other:?}"),
    }
}

/// A thread of a block, in grids and blocks of one dimension.
pub(crate) fn actor(block: u32, thread: u32) -> Option<Who> {
    Some(Who { block: [block, 0, 0], thread: Some([thread, 0, 0]), warp: None, lanes: 0 })
}

pub(crate) fn line_number(finding: &Finding) -> Option<u32> {
    finding.line().map(|l| l.line)
}
