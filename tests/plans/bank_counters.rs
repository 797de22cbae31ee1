//! Contract: the passes over the banks of shared memory that the model counts are those that a profiler counted, in every
//! experiment. `../data/h200_banks.txt` says how they were taken.
//!
//! `CUTEMPLATE_TEST_DATA=folder cargo test --test plans bank_counters::` writes the program of the experiments into the folder.

use std::collections::BTreeMap;
use std::path::Path;

use crate::banks::cuda::program;
use crate::banks::{Experiment, Op, SOURCE, SPAN, experiments};
use cutemplate::model::{Request, SharedOp};
use cutemplate::units::Bytes;

#[test]
fn the_experiments_are_what_they_say() {
    let experiments = experiments();
    for (number, experiment) in experiments.iter().enumerate() {
        let Experiment { name, bytes, addresses, sources, .. } = experiment;
        assert_eq!((addresses.len(), sources.len()), (32, 32), "{name}");
        let fits = |at: &i64, span: i64| at % bytes == 0 && (0..=span - bytes).contains(at);
        assert!(addresses.iter().flatten().all(|at| fits(at, SPAN)), "{name}");
        assert!(sources.iter().all(|at| fits(at, SOURCE)), "{name}");
        assert!(experiments[..number].iter().all(|other| other.name != *name), "{name} is there twice");
    }
    if let Some(folder) = std::env::var_os("CUTEMPLATE_TEST_DATA") {
        std::fs::write(Path::new(&folder).join("banks.cu"), program(&experiments)).expect("the folder is there");
    }
}

/// Lanes that take part and write the same: such a copy is a race, of which nothing is claimed.
fn races(experiment: &Experiment) -> bool {
    let mut addresses: Vec<i64> = experiment.addresses.iter().flatten().copied().collect();
    addresses.sort_unstable();
    experiment.op == Op::Copy && addresses.windows(2).any(|pair| pair[0] == pair[1])
}

fn request(experiment: &Experiment) -> Request {
    let op = match experiment.op {
        Op::Load => SharedOp::Load,
        Op::Store => SharedOp::Store,
        Op::Copy => SharedOp::Copy,
    };
    let request = Request::new(op, Bytes(experiment.bytes as u64), experiment.addresses.clone());
    Request { sources: experiment.sources.clone(), ..request }
}

#[test]
fn the_model_counts_what_the_profiler_counts() {
    let rows = include_str!("../data/h200_banks.txt").lines().filter(|line| !line.starts_with('#'));
    let counted: BTreeMap<&str, [u32; 2]> = rows
        .map(|row| {
            let (name, numbers) = row.split_once(" | ").expect("a name and numbers");
            let numbers: Vec<u32> = numbers.split(' ').map(|n| n.parse().expect("a number")).collect();
            (name, numbers.try_into().expect("two numbers"))
        })
        .collect();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for experiment in &experiments() {
        let [wavefronts, conflicts] = counted.get(experiment.name.as_str()).copied().expect("every experiment was run");
        if races(experiment) {
            continue;
        }
        compared += 1;
        let request = request(experiment);
        // The counter of conflicts stays 0 for copies of 16 bytes.
        let extra = if experiment.op == Op::Copy && experiment.bytes == 16 { 0 } else { request.extra() };
        if (request.wavefronts(), extra) != (wavefronts, conflicts) {
            let Request { addresses, sources, .. } = &request;
            let model = (request.wavefronts(), extra);
            wrong.push(format!(
                "{}: counted {:?}, model {model:?}\n  {addresses:?}\n  {sources:?}",
                experiment.name,
                (wavefronts, conflicts)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(counted.len(), experiments().len(), "every row has its experiment");
    assert!(compared >= 300, "{compared}");
}
