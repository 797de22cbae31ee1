//! A tensor as the templates name it.

use super::super::decide::Decision;
use super::super::launch::stride;
use super::super::schedule::Hold;
use super::super::tensors::Tensor;
use crate::emit;
use crate::expr::rows::Level;
use crate::plan::ModeStride;

/// A tensor as the templates name it.
pub(super) struct Matrix {
    pub(super) name: &'static str,
    /// `ElementX const` for a tensor that is read.
    pub(super) pointee: String,
    pub(super) element: &'static str,
    pub(super) bytes: u64,
    pub(super) param: String,
    pub(super) shape: String,
    pub(super) strides: String,
    /// `(M,N)`.
    pub(super) modes: String,
    pub(super) kind: Kind,
    /// Its copy from or to memory: `Load` or `Stage`, of the source of a partition, or `Store`, to its destination.
    pub(super) verb: &'static str,
    pub(super) side: &'static str,
    /// From the first row to that of a thread, where an index names it.
    pub(super) row: Option<String>,
    /// Where its rows wait, from the begin of dynamic shared memory.
    pub(super) offset: i64,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Loaded ahead of the first traversal, and held.
    Held,
    /// Loaded in each traversal that reads it, chunk by chunk.
    Late,
    /// The same, a tile at once.
    Again,
    /// The same, from shared memory, where it waits.
    Staged,
    /// Loaded once for each row and held, from shared memory, where its rows queue.
    Queued,
    /// Loaded once, and held for all rows.
    Resident,
    Store,
    /// One value for a row.
    Row,
    /// Written for rows or groups.
    Value,
    /// Never read, or written by another entry.
    Unused,
}

impl Matrix {
    /// Whether a thread holds its part of it for all rows.
    pub(super) fn is_resident(&self) -> bool {
        self.kind == Kind::Resident
    }
}

pub(super) fn kind(decision: &Decision, tensor: &Tensor) -> Kind {
    let last = decision.passes.traversals().count().saturating_sub(1);
    match tensor.level {
        Level::Element if tensor.output => Kind::Store,
        Level::Column => Kind::Unused,
        _ if tensor.output => Kind::Value,
        _ if tensor.read.is_none() => Kind::Unused,
        Level::Element if decision.schedule.loads_late(tensor, last) => Kind::Late,
        Level::Element if decision.schedule.stages > 1 && tensor.is_weight() => Kind::Resident,
        Level::Element if decision.schedule.queues(tensor) && decision.schedule.stages > 1 => Kind::Queued,
        Level::Element if decision.schedule.queues(tensor) => Kind::Staged,
        Level::Element if decision.schedule.hold != Hold::Registers => Kind::Again,
        Level::Element => Kind::Held,
        _ => Kind::Row,
    }
}

pub(super) fn matrix(decision: &Decision, tensor: &Tensor) -> Matrix {
    let of_mode = |(mode, of): (usize, &ModeStride)| match of {
        _ if mode == 0 && tensor.gathered => "_0{}".to_owned(),
        ModeStride::Unit => "_1{}".to_owned(),
        ModeStride::Broadcast => "_0{}".to_owned(),
        ModeStride::Dynamic => format!("params.{}", stride(&tensor.param, mode)),
    };
    let strides: Vec<String> = tensor.spec.strides.iter().enumerate().map(of_mode).collect();
    let (columns, modes) = match tensor.level {
        Level::Group(size) => (format!("ceil_div(params.n, {size})"), format!("(M,ceil(N/{size}))")),
        Level::Element => ("params.n".to_owned(), "(M,N)".to_owned()),
        _ => ("params.n".to_owned(), "(M)".to_owned()),
    };
    let kind = kind(decision, tensor);
    let shape = match tensor.level {
        Level::Column => "params.n".to_owned(),
        _ if strides.len() == 1 => "params.m".to_owned(),
        _ => format!("params.m, {columns}"),
    };
    Matrix {
        name: tensor.name,
        pointee: format!("Element{}{}", tensor.name, if tensor.output { "" } else { " const" }),
        element: emit::element(tensor.spec.dtype),
        bytes: tensor.spec.dtype.bytes().0,
        param: tensor.param.clone(),
        shape: format!("make_shape({shape})"),
        strides: format!("make_stride({})", strides.join(", ")),
        modes,
        verb: match kind {
            Kind::Store => "Store",
            Kind::Staged | Kind::Queued => "Stage",
            _ => "Load",
        },
        kind,
        offset: decision.schedule.staged(decision.tensors.iter().take_while(|other| other.name != tensor.name)),
        row: tensor.gathered.then(|| match tensor.spec.strides.first() {
            Some(ModeStride::Dynamic) => format!(" * params.{}", stride(&tensor.param, 0)),
            _ => String::new(),
        }),
        side: if tensor.output { "D" } else { "S" },
    }
}
