//! candle's layouts as those of views.

use candle_core::{Layout, Result, bail};
use cutemplate::view::ViewLayout;

/// A tensor as a matrix: its last mode along the rows, the others merged, which their strides have to allow.
pub(crate) fn matrix(of: &Layout) -> Result<ViewLayout> {
    let (dims, strides) = (of.dims(), of.stride());
    let Some(((&n, outer), (&inner, outer_strides))) = dims.split_last().zip(strides.split_last()) else {
        bail!("found a tensor without modes, required a matrix");
    };
    // Modes of one element have no stride of their own.
    let mut modes = outer.iter().zip(outer_strides).filter(|(dim, _)| **dim != 1).rev();
    let (mut m, stride) = modes.next().map_or((1, n), |(dim, stride)| (*dim, *stride));
    for (dim, outer) in modes {
        if *outer != m * stride {
            bail!("found {dims:?} with strides {strides:?}, required rows at one distance; call .contiguous() first");
        }
        m *= dim;
    }
    layout([m, n], [stride, inner])
}

/// The same of two modes.
pub(crate) fn layout(shape: [usize; 2], strides: [usize; 2]) -> Result<ViewLayout> {
    let signed = |of: [usize; 2]| of.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    match ViewLayout::strided(&signed(shape), &signed(strides)) {
        Some(layout) => Ok(layout),
        None => bail!("found {shape:?} with strides {strides:?}, required a matrix"),
    }
}

/// A new matrix of that shape, row-major.
pub(crate) fn row_major(shape: &[i64]) -> Result<ViewLayout> {
    match ViewLayout::row_major(shape) {
        Some(layout) => Ok(layout),
        None => bail!("found {shape:?}, required a shape that memory holds"),
    }
}

/// Whether rows are contiguous.
pub(crate) fn has_rows(of: &ViewLayout) -> bool {
    matches!((of.shape(), of.stride()), ([_, n], [_, stride]) if *stride == 1 || *n == 1)
}
