//! The machine, as a plan counts on it: banks of shared memory, sectors, multiprocessors, pipes and their rates.

pub mod banks;
mod machine;
mod occupancy;
mod shared;
mod thread_values;
pub(crate) mod traffic;
mod work;

pub use banks::{Request, SharedOp};
pub use machine::{H200, Machine};
pub use occupancy::{Footprint, Occupancy, OccupancyLimit};
#[cfg(feature = "draw")]
pub(crate) use shared::lane_ranges;
pub use shared::{AccessReport, Conflict, Proposal, SharedAnalysis, SharedError, SharedTensor, WarpAccess};
pub(crate) use shared::{Source, Sums, apart};
pub use thread_values::{GlobalVerdict, SharedVerdict, ThreadValues};
pub use traffic::{Limit, On, Prediction, SECTOR, Traffic};
pub use work::{Pipe, TensorOp, TensorWork, Work};
