//! Recipes planned and emitted, on one core: `taskset -c 0 cargo bench --no-default-features --features emit --bench plans`.
//!
//! Each iteration is 1,000 plans of a family's catalogue in turn, each under a name of its own, and their texts.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cutemplate::arch::Targets;
use cutemplate::emit::render;
use cutemplate::recipe::{FAMILIES, Family};
use cutemplate::settings::Settings;

const COUNT: u64 = 1000;

/// A family, and settings of it.
type Recipes = Vec<(&'static Family, Settings)>;

fn recipes(family: &'static Family) -> Recipes {
    family.catalogue.iter().map(|settings| (family, Settings::parse_lines(settings))).collect()
}

/// Bytes of the texts.
fn emit(recipes: &Recipes) -> usize {
    let mut bytes = 0;
    for (number, (family, settings)) in (0..COUNT).zip(recipes.iter().cycle()) {
        let name = format!("kernel_{number}");
        let plan = family.plan(settings, Some(&name), &Targets::default()).expect("a catalogue entry");
        bytes +=
            plan.texts().iter().flat_map(|part| render(part).files().to_vec()).map(|f| f.text.len()).sum::<usize>();
    }
    bytes
}

fn plans(c: &mut Criterion) {
    let mut group = c.benchmark_group("plans");
    group.throughput(Throughput::Elements(COUNT));
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(5)).sample_size(10);
    let all: Vec<(&str, Recipes)> = FAMILIES.iter().map(|family| (family.name, recipes(family))).collect();
    for (name, recipes) in &all {
        group.bench_function(*name, |bench| bench.iter(|| black_box(emit(recipes))));
    }
    let all: Recipes = all.into_iter().flat_map(|(_, recipes)| recipes).collect();
    group.bench_function("the catalogue", |bench| bench.iter(|| black_box(emit(&all))));
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
