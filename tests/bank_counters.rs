//! Contract: the passes over the banks of shared memory that the model counts are those that a profiler counted.

#[path = "support/banks/mod.rs"]
mod banks;

use banks::cuda::program;
use banks::{SOURCE, SPAN, experiments};

/// The program of the experiments, for a machine with a GPU: `CUTEMPLATE_TEST_DATA` names the folder that gets it.
#[test]
fn the_experiments_are_what_they_say() {
    let experiments = experiments();
    for (number, experiment) in experiments.iter().enumerate() {
        assert_eq!(experiment.addresses.len(), 32, "{}", experiment.name);
        for at in experiment.addresses.iter().flatten() {
            assert!(at % experiment.bytes == 0 && (0..=SPAN - experiment.bytes).contains(at), "{}", experiment.name);
        }
        for from in &experiment.sources {
            assert!(
                from % experiment.bytes == 0 && (0..=SOURCE - experiment.bytes).contains(from),
                "{}",
                experiment.name
            );
        }
        let twice = experiments[..number].iter().any(|other| other.name == experiment.name);
        assert!(!twice, "{} is there twice", experiment.name);
    }
    if let Some(folder) = std::env::var_os("CUTEMPLATE_TEST_DATA") {
        let folder = std::path::Path::new(&folder);
        std::fs::write(folder.join("banks.cu"), program(&experiments)).expect("the folder is there");
        let list: String = experiments
            .iter()
            .enumerate()
            .map(|(n, e)| format!("{} | {} | {:?} | {:?}\n", banks::cuda::kernel(n), e.name, e.addresses, e.sources))
            .collect();
        std::fs::write(folder.join("banks.txt"), list).expect("the folder is there");
    }
}
