//! Contract: of new rows that lie one after the other, each is right at the position that its sequence's length says, and nowhere else.
//! Rows without a sequence, a position in the table or a page are right nowhere; queries without a sequence are 0.

use cutemplate::arch::Targets;
use cutemplate::dtype::DType;
use cutemplate::plan::Plan;
use cutemplate::recipe::{Append, Recipe};
use cutemplate::settings::Settings;
use cutemplate::verify::{self, Tensor, TensorLayout};
use cutemplate::view::ViewLayout;
use half::f16;

const ROWS: usize = 8;
const PAGES: usize = 9;
const D: usize = 16;

fn plan() -> Plan {
    let settings = Settings::parse_lines("head=16\nqueries=true\nvarlen=true");
    Append::from_settings(&settings).expect("settings").plan(&Targets::default()).expect("a right recipe")
}

/// Rows of elements that tell them apart.
fn rows(first: usize) -> Vec<f16> {
    (0..ROWS * D).map(|at| f16::from_f64((first + at) as f64)).collect()
}

/// Whether K, V and Rotated are right, where these rows lie in these rows of pages, and queries without a sequence are 0.
fn accepts(starts: [i32; 5], placed: &[(usize, [usize; 2])], outside: &[usize]) -> [bool; 3] {
    let (plan, [keys, values, queries]) = (plan(), [1, 200, 400].map(rows));
    let of_rows = |rows: &[f16]| Tensor::of(rows, &[ROWS as i64, 1, D as i64]).expect("small");
    // Angles of 0. Entries of sequences: the second one has no page, nor has the last one of the third.
    let angles = |x: f32| Tensor::of(&[x; 8], &[1, 8]).expect("small");
    let table = [3, -1, -1, -1, -1, -1, 7, 1, 20, 2, 4, 5];
    let inputs = [
        of_rows(&keys),
        of_rows(&values),
        of_rows(&queries),
        angles(1.0),
        angles(0.0),
        Tensor::of(&starts, &[5]).expect("small"),
        Tensor::of(&table, &[4, 3]).expect("small"),
        Tensor::of(&[2, 3, 5, 7], &[4]).expect("small"),
    ];
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let pages =
        TensorLayout::from(ViewLayout::strided(&[PAGES as i64, 2, 1, D as i64], &[32, 16, 16, 1]).expect("small"));
    let rotated = TensorLayout::from(ViewLayout::strided(&[ROWS as i64, 1, D as i64], &[16, 16, 1]).expect("small"));
    let mut outputs = [pages, pages, rotated].map(|layout| Tensor::new(DType::F16, layout).expect("small"));
    verify::fill_unwritten(&plan, &inputs, &[], &mut outputs).expect("its inputs");
    let write = |tensor: &mut Tensor, at: usize, row: &[f16]| {
        let begin = tensor.start().0 as usize + 2 * D * at;
        let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_bits().to_le_bytes()).collect();
        tensor.storage_mut()[begin..begin + 2 * D].copy_from_slice(&bytes);
    };
    for (row, [page, of_page]) in placed {
        for (tensor, all) in outputs.iter_mut().zip([&keys, &values]) {
            write(tensor, 2 * page + of_page, &all[D * row..D * (row + 1)]);
        }
    }
    for row in 0..ROWS {
        let own = if outside.contains(&row) { &[f16::ZERO; D] } else { &queries[D * row..D * (row + 1)] };
        write(&mut outputs[2], row, own);
    }
    let outputs: Vec<&Tensor> = outputs.iter().collect();
    let verdicts = verify::check(&plan, &inputs, &[], &outputs).expect("its inputs");
    [0, 1, 2].map(|output| verdicts[output].is_right())
}

/// Rows 1 to 3 are of the first sequence, with a row ahead of position 0. The third start goes back, so the second sequence is empty. Row 5 has
/// no page. The last sequence ends with the rows, the last of them past the table.
#[test]
fn each_row_has_its_place() {
    let (starts, placed) = ([1, 4, 2, 6, 99], [(2, [3, 0]), (3, [3, 1]), (4, [1, 1]), (6, [5, 1])]);
    assert_eq!(accepts(starts, &placed, &[0]), [true; 3]);
    assert_eq!(accepts(starts, &placed[1..], &[0]), [false, false, true], "a row that is not written");
    let further = [&placed[..], &[(7, [2, 0])]].concat();
    assert_eq!(accepts(starts, &further, &[0]), [false, false, true], "a row past the table");
    assert_eq!(accepts(starts, &placed, &[]), [true, true, false], "a query without a sequence");
}

#[test]
fn one_row_and_no_row() {
    let all: Vec<usize> = (0..ROWS).collect();
    assert_eq!(accepts([0, 0, 0, 1, 1], &[], &all[1..]), [true; 3], "its entry names no page");
    assert_eq!(accepts([0, 1, 1, 1, 1], &[(0, [3, 1])], &all[1..]), [true; 3]);
    assert_eq!(accepts([0, 1, 1, 1, 1], &[(0, [3, 0])], &all[1..]), [false, false, true], "a position too early");
    assert_eq!(accepts([8, 8, 8, 8, 8], &[], &all), [true; 3], "all rows lie ahead of the first");
    assert_eq!(accepts([-3, -2, -1, 0, 0], &[], &all), [true; 3], "all rows lie behind the last");
}
