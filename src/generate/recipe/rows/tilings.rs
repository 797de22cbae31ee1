//! Which thread has which columns of which row, and over which threads reductions go.

use super::schedule::{Hold, Schedule};
use super::tensors::Tensor;
use crate::arch::Arch;
use crate::dtype::DType;
use crate::expr::rows::{Along, Level, Made, Passes, Reduction, Traversal};
use crate::layout::{Layout, LayoutError};
use crate::model::banks::WARP;
use crate::plan::interned;
use crate::tiling::{
    Axis, Completion, CopyOp, Engine, Global, Guard, Inner, Order, Pipeline, Place, ReduceOp, Reduced, Scope,
    SmemTensor, TileCopy, TileReduce, Tiling, flat,
};
use crate::units::Bytes;

/// (rows, columns) to their numbers, along columns first.
fn numbered([rows, columns]: [i64; 2]) -> Result<Layout, LayoutError> {
    flat([(rows, columns), (columns, 1)])
}

/// Bytes that one instruction moves of a tensor, for vectors of so many elements.
pub(super) fn instruction(tensor: &Tensor, vec: i64) -> Bytes {
    let bytes = tensor.spec.dtype.bytes();
    match tensor.is_contiguous() {
        true => Bytes(bytes.0 * vec.unsigned_abs()).min(Arch::MAX_VECTOR),
        false => bytes,
    }
}

/// Where rows that wait in shared memory lie: (ROWS,COLUMNS,TILES), or stages instead of tiles.
fn staged(tensor: &Tensor, schedule: &Schedule) -> Result<SmemTensor, LayoutError> {
    let (columns, tiles) = (schedule.columns(), schedule.waiting());
    let modes = if schedule.stages > 1 { "(ROWS,COLUMNS,STAGES)" } else { "(ROWS,COLUMNS,TILES)" };
    let layout = flat([(schedule.rows, columns * tiles), (columns, 1), (tiles, columns)])?;
    Ok(SmemTensor::plain([tensor.name, modes], tensor.spec.dtype, layout, Arch::MAX_VECTOR))
}

/// The copies of a tensor: from memory to the threads or back, by way of shared memory where rows wait there.
fn copies(tensor: &Tensor, schedule: &Schedule, vec: i64, whole: bool) -> Result<Vec<TileCopy>, LayoutError> {
    let dtype = tensor.spec.dtype;
    let moved = if whole { instruction(tensor, vec) } else { dtype.bytes() };
    let matrix =
        Place::Global(Global { align: if whole { moved } else { dtype.bytes() }, ..Global::matrix(tensor.name) });
    let shared = Place::Shared(tensor.name);
    let (threads, values) = (numbered([schedule.rows, schedule.threads])?, numbered([1, vec])?);
    let copy = |verb, what, from, to, op, completes| TileCopy {
        name: interned(format!("{verb}{}", tensor.name)),
        what,
        tile: [schedule.rows, schedule.columns()],
        dtype,
        from,
        to,
        engine: Engine::Threads { op, threads: threads.clone(), values: values.clone() },
        guard: if matches!(from, Place::Shared(_)) { Guard::None } else { Guard::Elements },
        completes,
        split: (schedule.cluster > 1).then_some((1, 1)),
    };
    let plain = CopyOp::Universal(moved);
    let (load, store, all) = ("load of an input", "store of an output", Place::Threads);
    Ok(match () {
        () if tensor.output => vec![copy("Store", store, all, matrix, plain, Completion::Program)],
        () if schedule.queues(tensor) => {
            let (op, completes) = match asynchronous(tensor, whole) {
                true => (CopyOp::CpAsync(moved), Completion::CpAsyncGroup),
                false => (plain, Completion::Program),
            };
            vec![
                copy("Load", "load of what waits", shared, all, plain, Completion::Program),
                copy("Stage", "copy of an input to where it waits", matrix, shared, op, completes),
            ]
        }
        () => vec![copy("Load", load, matrix, all, plain, Completion::Program)],
    })
}

/// Whether vectors of a tensor reach shared memory by `cp.async`.
fn asynchronous(tensor: &Tensor, whole: bool) -> bool {
    whole && tensor.is_contiguous()
}

/// What the warps of a row tell each other of a value.
fn of_warps(
    value: usize,
    reduction: Reduction,
    passes: &Passes,
    schedule: &Schedule,
) -> Result<SmemTensor, LayoutError> {
    let dtype = passes.compute().dtype();
    let both = reduction.is_index() || passes.pairs().iter().any(|pair| pair.first == value);
    let warps = schedule.cta() / WARP as i64 * schedule.cluster;
    // The column goes with the value, or a second one.
    let (modes, layout) = match both {
        true => ("(ROWS,WARPS,2)", flat([(schedule.rows, 2 * warps), (warps, 2), (2, 1)])?),
        false => ("(ROWS,WARPS)", flat([(schedule.rows, warps), (warps, 1)])?),
    };
    Ok(SmemTensor::plain([interned(format!("Value{value}")), modes], dtype, layout, dtype.bytes()))
}

/// The barriers of as many meetings of a row's CTAs.
fn met(meetings: i64) -> Result<SmemTensor, LayoutError> {
    Ok(SmemTensor::plain(["Met", "(MEETINGS,2)"], DType::I32, flat([(meetings, 2), (2, 1)])?, Bytes(8)))
}

/// The reductions along whole rows, with the values that they give. A value that is made with another is part of its state.
pub(super) fn along_rows(passes: &Passes) -> impl Iterator<Item = (usize, Reduction)> {
    let alone = |value: usize| passes.pairs().iter().all(|pair| pair.second != value);
    passes.values().iter().enumerate().filter_map(move |(value, of)| match of.reduction {
        Some((reduction, Along::Row)) if alone(value) => Some((value, reduction)),
        _ => None,
    })
}

/// Whether a program has no more to do with rows than that groups end where they do: each tile of a row is by itself.
pub(super) fn is_cut(passes: &Passes) -> bool {
    let alone = |level| matches!(level, Level::Element | Level::Group(_) | Level::Column);
    along_rows(passes).next().is_none() && passes.outputs().iter().all(|output| alone(output.level))
}

/// How often the threads of a row reduce together.
pub(super) fn meetings(passes: &Passes) -> usize {
    let of_rows = |of: &&Traversal| of.makes.iter().any(|made| matches!(made, Made::Reduced(_, Along::Row, _)));
    passes.traversals().filter(of_rows).count()
}

/// How two become one. Conditions are 1 and 0.
pub(super) fn op(reduction: Reduction) -> ReduceOp {
    match reduction {
        Reduction::Sum => ReduceOp::Sum,
        Reduction::Prod => ReduceOp::Product,
        Reduction::Max | Reduction::ArgMax | Reduction::Any => ReduceOp::Max,
        Reduction::Min | Reduction::ArgMin | Reduction::All => ReduceOp::Min,
    }
}

/// Over which threads a row is reduced: lanes, then warps and CTAs through one tensor.
fn over(value: usize, schedule: &Schedule) -> Vec<Scope> {
    let through = interned(format!("Value{value}"));
    let warps = (schedule.parts() > 1).then_some(Scope::Warps(through));
    let ctas = (schedule.cluster > 1).then_some(Scope::Cluster(1, through));
    [Scope::Lanes].into_iter().chain(warps).chain(ctas).collect()
}

/// A CTA for each tile of rows and of columns; a cluster of CTAs for each of as many rows as a CTA has, each CTA with a part of their
/// columns; or a CTA that runs over them.
fn order(schedule: &Schedule) -> Order {
    if schedule.cut {
        let known = [("m", schedule.rows), ("n", schedule.columns())];
        let (mut order, [m, n], [cta]) = Order::new(known, ["cta"]);
        let (rows, pieces) = (m.ceil_div(schedule.rows), n.ceil_div(schedule.columns()));
        order.pieces = vec![Axis { at: cta.clone(), extent: rows.clone() * pieces.clone() }];
        order.tile = vec![Axis { at: cta.clone() / pieces.clone(), extent: rows }];
        order.inner = Inner { first: cta % pieces.clone(), trips: 1.into(), tile: [0.into(), pieces] };
        return order;
    }
    if schedule.cluster == 1 {
        let inner = (schedule.hold != Hold::Registers).then_some(("n", schedule.columns()));
        return Order::numbered(&[("m", schedule.rows)], inner);
    }
    let (mut order, [m], [cta]) = Order::new([("m", schedule.rows)], ["cta"]);
    let (rows, cluster, tiles) = (m.ceil_div(schedule.rows), schedule.cluster, schedule.tiles);
    order.pieces = vec![Axis { at: cta.clone(), extent: rows.clone() * cluster }];
    order.tile = vec![Axis { at: cta.clone() / cluster, extent: rows }];
    let first = if tiles == 1 { cta % cluster } else { cta % cluster * tiles };
    order.inner = Inner { first, trips: tiles.into(), tile: [0.into(), (cluster * tiles).into()] };
    order
}

/// A CTA's rows. `whole` moves vectors at once; else each thread takes elements one by one, side by side with other threads, unless
/// groups need its neighbours.
pub(super) fn tiling(
    tensors: &[Tensor],
    passes: &Passes,
    schedule: &Schedule,
    whole: bool,
) -> Result<Tiling, LayoutError> {
    let vec = if whole || has_groups(passes) { schedule.vec } else { 1 };
    let mut moved: Vec<&Tensor> = tensors.iter().filter(|tensor| tensor.of_elements()).collect();
    if moved.is_empty() {
        // What is only there to say how long rows are says which thread has which column, too.
        moved.extend(tensors.iter().find(|tensor| tensor.level == Level::Element));
    }
    let copies: Vec<Vec<TileCopy>> =
        moved.into_iter().map(|tensor| copies(tensor, schedule, vec, whole)).collect::<Result<_, _>>()?;
    let copies = copies.concat();
    let waits = || tensors.iter().filter(|tensor| schedule.queues(tensor));
    let pipelines = waits().map(|tensor| Pipeline {
        name: tensor.name,
        tensors: vec![tensor.name],
        stages: schedule.waiting(),
        completes: if asynchronous(tensor, whole) { Completion::CpAsyncGroup } else { Completion::Program },
    });
    let pipelines = pipelines.collect();
    let several = schedule.parts() > 1;
    let smem = along_rows(passes).filter(|_| several);
    let smem = smem.map(|(value, reduction)| of_warps(value, reduction, passes, schedule));
    let told = (several && schedule.cluster > 1 && meetings(passes) > 0).then(|| met(meetings(passes) as i64));
    let smem = waits().map(|tensor| staged(tensor, schedule)).chain(smem).chain(told);
    let smem: Vec<SmemTensor> = smem.collect::<Result<_, _>>()?;
    let of = copies.first().map(|first| Reduced::Copied(first.name));
    let reduces = along_rows(passes).zip(of.into_iter().cycle()).map(|((value, reduction), of)| TileReduce {
        what: "reduction of a row",
        of,
        mode: 1,
        op: op(reduction),
        over: over(value, schedule),
    });
    let tile = [schedule.rows, schedule.columns()];
    Ok(Tiling {
        reduces: reduces.collect(),
        smem,
        pipelines,
        cluster: [1, schedule.cluster as u32, 1],
        ..Tiling::of_copies(tile, schedule.cta(), copies, order(schedule))
    })
}

/// Whether some value belongs to groups of elements.
pub(super) fn has_groups(passes: &Passes) -> bool {
    passes.values().iter().any(|value| matches!(value.level, Level::Group(_)))
}
