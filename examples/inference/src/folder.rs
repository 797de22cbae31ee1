//! Files of tensors, which both programs read and write.

use std::error::Error;
use std::path::{Path, PathBuf};

use cutemplate::device::{Buffer, Device, Number};
use cutemplate::verify::{Tensor, npy};
use cutemplate::view::ViewLayout;

/// What goes wrong, for `main` to say.
pub(crate) type Failed = Box<dyn Error>;

/// A folder with a file for each tensor.
pub(crate) struct Folder<'a> {
    pub(crate) path: &'a Path,
    pub(crate) device: Device,
}

impl Folder<'_> {
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.npy"))
    }

    /// The shape of a file, and its elements by rows.
    pub(crate) fn read<T: Number>(&self, name: &str) -> Result<(Vec<i64>, Vec<T>), Failed> {
        let array = npy::open(&self.file(name), T::DTYPE)?;
        let layout = ViewLayout::row_major(array.shape()).ok_or("more elements than an address reaches")?;
        let shape = array.shape().to_vec();
        let mut tensor = Tensor::new(T::DTYPE, layout)?;
        array.read_into(&mut tensor)?;
        Ok((shape, tensor.to_vec().unwrap_or_default()))
    }

    /// A tensor on the device, where the file has this shape.
    pub(crate) fn tensor<T: Number>(&self, name: &str, shape: &[i64]) -> Result<Buffer<T>, Failed> {
        let (found, elements) = self.read::<T>(name)?;
        if found != shape {
            return Err(format!("{}: found {found:?}, required {shape:?}", self.file(name).display()).into());
        }
        Ok(self.device.put(&elements)?)
    }

    /// A file for each step.
    pub(crate) fn write(&self, steps: &Steps) -> Result<(), Failed> {
        steps.0.iter().try_for_each(|(name, tensor)| Ok(npy::write(&self.file(name), tensor)?))
    }
}

/// What the steps of the forward pass leave: a matrix for each, with its name.
#[derive(Default)]
pub(crate) struct Steps(pub(crate) Vec<(String, Tensor)>);

impl Steps {
    pub(crate) fn keep<T: Number>(&mut self, name: &str, columns: i64, values: &Buffer<T>) -> Result<(), Failed> {
        let all = values.to_vec()?;
        let rows = all.len() as i64 / columns.max(1);
        self.0.push((name.to_owned(), Tensor::of(&all, &[rows, columns]).ok_or("too little memory")?));
        Ok(())
    }
}
