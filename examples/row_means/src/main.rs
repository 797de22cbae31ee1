//! The mean of each row of a table, by a library whose kernels are compiled already.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let columns = 1000;
    let table: Vec<f32> = (0_u16..4).flat_map(|row| (0_u16..1000).map(move |column| f32::from(row * column))).collect();
    let means = row_sums::scaled(&table, columns, 1.0 / columns as f64)?;
    println!("{means:?}");
    let right = means.iter().zip(0_u8..).all(|(mean, row)| (mean - 499.5 * f32::from(row)).abs() < 0.01);
    if right { Ok(()) } else { Err("the means are wrong".into()) }
}
