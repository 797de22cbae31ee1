//! The kernels, and steps that both programs take.

use cutemplate::device::{Buffer, Device, Kernel, Number};
use cutemplate::dtype::f16;
use cutemplate::recipe::gemm::GemmArgs;
use cutemplate::recipe::rows::RowsArgs;
use cutemplate::view::ViewLayout;

use crate::folder::Failed;

cutemplate::include_kernels!();

/// Elements of a head, which the kernels of attention are compiled for.
pub(crate) const HEAD: i64 = 32;

const EPSILON: f64 = 1e-5;

pub(crate) type Matrix = Buffer<f16>;

/// A layout of few extents.
pub(crate) fn strided<const N: usize>(shape: [i64; N], stride: [i64; N]) -> Result<ViewLayout, Failed> {
    ViewLayout::strided(&shape, &stride).ok_or_else(|| "found more than 5 modes".into())
}

/// Steps of any transformer.
pub(crate) struct Ops<'d> {
    pub(crate) device: &'d Device,
    gather: Kernel<moe_gather::Entry>,
    rms_norm: Kernel<rms_norm::Recipe>,
    residual_norm: Kernel<residual_norm::Recipe>,
    experts: Kernel<experts::Recipe>,
    rope: Kernel<rope::Recipe>,
    gated: Kernel<gated::Recipe>,
}

impl<'d> Ops<'d> {
    pub(crate) fn new(device: &'d Device) -> Result<Self, Failed> {
        Ok(Self {
            device,
            gather: moe_gather::load(device)?,
            rms_norm: rms_norm::load(device)?,
            residual_norm: residual_norm::load(device)?,
            experts: experts::load(device)?,
            rope: rope::load(device)?,
            gated: gated::load(device)?,
        })
    }

    /// Memory for as many elements.
    pub(crate) fn zeros<T: Number>(&self, elements: i64) -> Result<Buffer<T>, Failed> {
        Ok(self.device.zeros(elements as usize)?)
    }

    /// The rows of a table that the first `count` of `ids` name.
    pub(crate) fn gather(
        &self,
        ids: &Buffer<i32>,
        table: &Matrix,
        [count, numbered, features]: [i64; 3],
    ) -> Result<Matrix, Failed> {
        let mut x = self.zeros(count * features)?;
        let rows = |rows| ViewLayout::matrix([rows, features], features);
        self.gather.launch(moe_gather::args(
            ids.view(ViewLayout::vector(count)),
            table.view(rows(numbered)),
            x.view_mut(rows(count)),
        ))?;
        Ok(x)
    }

    /// `x / sqrt(mean(x^2) + epsilon) * scale` for each row.
    pub(crate) fn norm(&self, x: &Matrix, scale: &Matrix, [tokens, features]: [i64; 2]) -> Result<Matrix, Failed> {
        let rows = ViewLayout::matrix([tokens, features], features);
        let mut normal = self.zeros(tokens * features)?;
        let args = rms_norm::args(x.view(rows), scale.vector().row(tokens), normal.view_mut(rows), EPSILON);
        self.rms_norm.launch(args)?;
        Ok(normal)
    }

    /// `x + residual`, and that normalised.
    pub(crate) fn residual_norm(
        &self,
        x: &Matrix,
        residual: &Matrix,
        scale: &Matrix,
        [tokens, features]: [i64; 2],
    ) -> Result<(Matrix, Matrix), Failed> {
        let rows = ViewLayout::matrix([tokens, features], features);
        let (mut sum, mut normal) = (self.zeros(tokens * features)?, self.zeros(tokens * features)?);
        let scale = scale.vector().row(tokens);
        let outputs = (sum.view_mut(rows), normal.view_mut(rows));
        let args = residual_norm::args(x.view(rows), residual.view(rows), scale, outputs.0, outputs.1, EPSILON);
        self.residual_norm.launch(args)?;
        Ok((sum, normal))
    }

    /// The rows of each group by a matrix of its own, contiguous along its outputs.
    pub(crate) fn grouped(
        &self,
        x: &Matrix,
        weights: &Matrix,
        ends: &Buffer<i32>,
        [rows, inputs, outputs]: [i64; 3],
    ) -> Result<Matrix, Failed> {
        let mut y = self.zeros(rows * outputs)?;
        let of_weights = strided([inputs, outputs, ends.len() as i64], [outputs, 1, inputs * outputs])?;
        let to = y.view_mut(ViewLayout::matrix([rows, outputs], outputs));
        let from = x.view(ViewLayout::matrix([rows, inputs], inputs));
        self.experts.launch(GemmArgs::new(from, weights.view(of_weights), to).groups(ends.vector()))?;
        Ok(y)
    }

    /// Queries and keys, each pair of columns turned by the angle of its token's position and its place in the head.
    pub(crate) fn turned(
        &self,
        qkv: &Matrix,
        positions: &[i64],
        [heads, key_heads]: [i64; 2],
    ) -> Result<Matrix, Failed> {
        let tokens = positions.len() as i64;
        let (pairs, columns) = ((heads + key_heads) * HEAD / 2, (heads + key_heads) * HEAD);
        let angle = |at: i64| {
            let (token, pair) = (at / pairs, at % pairs % (HEAD / 2));
            positions[token as usize] as f64 * 10000.0_f64.powf(-2.0 * pair as f64 / HEAD as f64)
        };
        let of_all = |of: fn(f64) -> f64| (0..tokens * pairs).map(|at| of(angle(at)) as f32).collect::<Vec<_>>();
        let (cosines, sines) = (self.device.put(&of_all(f64::cos))?, self.device.put(&of_all(f64::sin))?);
        let (angles, from) = (ViewLayout::matrix([tokens, pairs], pairs), (heads + 2 * key_heads) * HEAD);
        // Even columns, and, from the next element on, odd ones.
        let (of_qkv, of_turned) = (strided([tokens, pairs], [from, 2])?, strided([tokens, pairs], [columns, 2])?);
        let mut turned = self.zeros(tokens * columns)?;
        let args = RowsArgs::new()
            .input(qkv.view(of_qkv))
            .input(qkv.view_at(1, of_qkv))
            .input(cosines.view(angles))
            .input(sines.view(angles))
            .output_parts(turned.vector_mut(), &[(0, of_turned), (1, of_turned)]);
        self.rope.launch(args)?;
        Ok(turned)
    }

    /// `silu(gate) * up` for both halves of the columns.
    pub(crate) fn gated(&self, gate_up: &Matrix, [rows, hidden]: [i64; 2]) -> Result<Matrix, Failed> {
        let half = ViewLayout::matrix([rows, hidden], 2 * hidden);
        let mut wide = self.zeros(rows * hidden)?;
        let to = wide.view_mut(ViewLayout::matrix([rows, hidden], hidden));
        self.gated.launch(gated::args(gate_up.view(half), gate_up.view_at(hidden as usize, half), to))?;
        Ok(wide)
    }
}
