//! Element types and strides of the tensors of a recipe, as text.

use core::fmt;
use core::str::FromStr;

use crate::diagnostic::debug_as_display;
use crate::dtype::DType;
use crate::plan::ModeStride;
use crate::view::MAX_RANK;

/// Element type and strides of a tensor, as text `f16:(?,1)`: `1` for the contiguous mode, `0` for a broadcast one, `?` for
/// a stride that the launch gives. Shapes are given at launch.
///
/// ```
/// use cutemplate::dtype::DType;
/// use cutemplate::recipe::TensorSpec;
///
/// let bias: TensorSpec = "f32:(0,1)".parse().unwrap();
/// assert_eq!((bias.dtype, bias.to_string().as_str()), (DType::F32, "f32:(0,1)"));
/// assert_eq!(TensorSpec::row_major(DType::F16, 3).to_string(), "f16:(?,?,1)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorSpec {
    /// Element type.
    pub dtype: DType,
    /// The stride along each mode; their number is the rank.
    pub strides: Vec<ModeStride>,
}

impl TensorSpec {
    /// The last mode is contiguous, the others have any stride.
    pub fn row_major(dtype: DType, rank: usize) -> Self {
        let mut strides = vec![ModeStride::Dynamic; rank];
        if let Some(last) = strides.last_mut() {
            *last = ModeStride::Unit;
        }
        Self { dtype, strides }
    }

    /// The first mode is contiguous, the others have any stride.
    pub fn column_major(dtype: DType, rank: usize) -> Self {
        let mut spec = Self::row_major(dtype, rank);
        spec.strides.reverse();
        spec
    }

    /// One element for all coordinates.
    pub fn scalar(dtype: DType, rank: usize) -> Self {
        Self { dtype, strides: vec![ModeStride::Broadcast; rank] }
    }
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modes: Vec<String> = self.strides.iter().map(ToString::to_string).collect();
        match &modes[..] {
            [one] => write!(f, "{}:{one}", self.dtype),
            modes => write!(f, "{}:({})", self.dtype, modes.join(",")),
        }
    }
}

/// The text is not a tensor specification.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The element type.
    #[error(transparent)]
    Type(#[from] crate::dtype::UnknownDType),
    /// A stride.
    #[error("`{0}` is not a stride: use 1 (contiguous), 0 (broadcast) or ? (given at launch); for example f16:(?,1)")]
    Stride(String),
    /// Parentheses.
    #[error("`{0}` has a parenthesis without its partner; for example f16:(?,1)")]
    Parenthesis(String),
    /// How many modes.
    #[error("`{found}` has {rank} modes; tensors of rank 1 to {MAX_RANK} are known")]
    Rank {
        /// The text.
        found: String,
        /// Its modes.
        rank: usize,
    },
}

debug_as_display!(SpecError);

impl FromStr for TensorSpec {
    type Err = SpecError;

    /// A type alone is a row-major matrix.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        let Some((dtype, strides)) = text.split_once(':') else {
            return Ok(Self::row_major(text.parse()?, 2));
        };
        let dtype = dtype.trim().parse()?;
        let strides = strides.trim();
        if strides.starts_with('(') != strides.ends_with(')') {
            return Err(SpecError::Parenthesis(text.to_owned()));
        }
        let inner = strides.strip_prefix('(').and_then(|s| s.strip_suffix(')')).unwrap_or(strides);
        let stride = |s: &str| match s.trim() {
            "1" => Ok(ModeStride::Unit),
            "0" => Ok(ModeStride::Broadcast),
            "?" => Ok(ModeStride::Dynamic),
            other => Err(SpecError::Stride(other.to_owned())),
        };
        if inner.trim().is_empty() {
            return Err(SpecError::Rank { found: text.to_owned(), rank: 0 });
        }
        let strides = inner.split(',').map(stride).collect::<Result<Vec<_>, _>>()?;
        if strides.len() > MAX_RANK {
            return Err(SpecError::Rank { found: text.to_owned(), rank: strides.len() });
        }
        Ok(Self { dtype, strides })
    }
}

/// A list of specifications: `f16:(?,1), f32:(0,1)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SpecList(pub(crate) Vec<TensorSpec>);

impl fmt::Display for SpecList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(", "))
    }
}

impl FromStr for SpecList {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut depth = 0_usize;
        let items = text.split(|c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        let items: Vec<&str> = items.map(str::trim).filter(|s| !s.is_empty()).collect();
        Ok(Self(items.into_iter().map(str::parse).collect::<Result<_, _>>()?))
    }
}
