//! Contract: what was measured decides for problems like those; a model decides for the rest.

use std::collections::BTreeSet;

use cutemplate::arch::{Arch, Targets};
use cutemplate::model::{H200, Machine};
use cutemplate::recipe::product::{Major, Measured, Problem, Record};
use cutemplate::recipe::sgemm::choose;
use cutemplate::recipe::{Family, Gemm, Recipe, Sgemm, family, gemm};
use cutemplate::settings::Settings;

fn h200() -> Record {
    Sgemm::record().expect("it was measured on an H200")
}

fn sgemm() -> &'static Family {
    family(Sgemm::FAMILY).expect("registered")
}

#[test]
fn the_record_is_read_back_as_it_is_written() {
    let record = h200();
    assert!(record.rows.len() >= 10, "{record}");
    assert_eq!(record.to_string(), include_str!("../../src/generate/recipe/sgemm/h200.txt"));
    assert_eq!(record.to_string().parse(), Ok(record));
}

#[test]
fn a_damaged_record_says_where() {
    for (text, part) in [
        ("", "the name of a kernel family"),
        ("sgem\nGPU", "did you mean `sgemm`?"),
        ("sgemm", "the name of a device"),
        ("sgemm\nGPU\n512x512 row row | variant=pipelined | 1 1", "is not a problem"),
        ("sgemm\nGPU\n512x512x512 row up | variant=pipelined | 1 1", "is not a problem"),
        ("sgemm\nGPU\n512x512x512 row row | 1 1", "no three parts"),
        ("sgemm\nGPU\n512x512x512 row row | variant=pipelined | fast", "does not end in a rate"),
        ("sgemm\nGPU\n512x512x512 row row | variant=fastest | 1 1", "fastest"),
        ("gemm\nGPU\n512x512x512 row col | variant=pipelined | 1 1", "variant=pipelined"),
    ] {
        let error = text.parse::<Record>().expect_err(text);
        assert!(error.contains(part), "{text:?}: {error}");
    }
}

#[test]
fn measured_problems_and_their_neighbours_get_what_was_measured() {
    let record = h200();
    for row in &record.rows {
        assert_eq!(Sgemm::choose(&row.problem, &H200, &record).settings(), row.settings, "{}", row.problem);
        let chosen = sgemm().chosen(&row.problem, &H200, &Settings::default()).expect("a choice");
        assert_eq!(chosen.as_ref(), Ok(&row.settings), "{}", row.problem);
    }
    let near = Problem::rows(3072, 4096, 4000);
    let row = record.nearest(&near).expect("a row");
    assert_eq!(Sgemm::choose(&near, &H200, &record).settings(), row.settings);
    // Of problems that differ by more, nothing is said.
    assert_eq!(record.alike(&Problem::rows(1, 4096, 4096)), None);
}

/// A record of another family says nothing, even where its settings could be read.
#[test]
fn a_record_is_of_one_family() {
    let problem = Problem::rows(512, 512, 512);
    let mut other = Record::new(family(Gemm::FAMILY).expect("registered"), "GPU");
    let settings = Sgemm { stages: 7, ..Default::default() }.settings();
    other.rows.push(Measured { problem, settings: settings.clone(), tflop_per_s: 1.0, ratio: 1.0 });
    assert_ne!(Sgemm::choose(&problem, &H200, &other).settings(), settings);
    let mut own = Record::new(sgemm(), "GPU");
    own.rows = other.rows.clone();
    assert_eq!(Sgemm::choose(&problem, &H200, &own).settings(), settings);
    // A family that only its crate knows is given; its name is compared.
    let text = own.to_string();
    assert_eq!(Record::of(sgemm(), &text), Ok(own));
    let refused = Record::of(family(Gemm::FAMILY).expect("registered"), &text);
    assert_eq!(refused.expect_err("another family"), "found a record of `sgemm`, required one of `gemm`");
}

#[test]
fn every_choice_of_the_model_is_a_plan_for_its_problem() {
    let mut planned = Vec::new();
    let extents = [1, 3, 64, 1000, 30_000];
    for (m, n, k) in extents.iter().flat_map(|m| extents.iter().flat_map(move |n| extents.map(|k| (*m, *n, k)))) {
        for (a, b) in [(Major::Row, Major::Row), (Major::Col, Major::Row), (Major::Row, Major::Col)] {
            let problem = Problem { m, n, k, a, b };
            let expected = choose::expect(&problem, &H200);
            let best = expected.first().expect("a candidate is left");
            assert!(best.seconds() > 0.0 && best.seconds().is_finite(), "{problem}");
            assert_eq!((best.recipe.a, best.recipe.b), (a, b));
            assert!(problem.is_aligned() || best.recipe.vector == 4, "{problem}");
            if !planned.contains(&best.recipe) {
                best.recipe.plan(&Targets::default()).unwrap_or_else(|refused| panic!("{problem}: {refused}"));
                planned.push(best.recipe.clone());
            }
        }
    }
}

/// Candidates were timed on an H200 for these problems: how fast the model's choice of those that were is, the best being 1.
fn told<R: Recipe>(measured: &str, machine: &Machine) -> String {
    let mut told = String::new();
    for line in measured.lines().filter(|l| !l.starts_with('#')) {
        let (problem, times) = line.split_once(" | ").expect("problem | times");
        let problem: Problem = problem.parse().expect("a problem");
        let times: Vec<f64> = times.split_whitespace().map(|t| t.parse().expect("microseconds")).collect();
        let tried = R::candidates(&problem, machine);
        assert_eq!(tried.len(), times.len(), "{problem}: one time for each candidate");
        let took = |chosen: &R| times[tried.iter().position(|c| c == chosen).expect("a candidate")];
        let expected = R::expected(&problem, machine);
        let mut timed = expected.iter().map(|(candidate, _)| took(candidate)).filter(|time| *time > 0.0);
        let chosen = timed.next().expect("one was timed");
        let best = timed.fold(chosen, f64::min);
        told.push_str(&format!("{problem}: {:.2} of the best\n", best / chosen));
    }
    told
}

#[test]
fn the_model_chooses_well_on_what_was_measured() {
    expect_test::expect![[r#"
        512x512x512 row row: 1.00 of the best
        1024x1024x1024 row row: 0.95 of the best
        2048x2048x2048 row row: 1.00 of the best
        4096x4096x4096 row row: 0.97 of the best
        8192x8192x8192 row row: 0.97 of the best
        4096x4096x64 row row: 1.00 of the best
        64x8192x4096 row row: 0.99 of the best
        8192x64x4096 row row: 0.93 of the best
        1000x1000x1000 row row: 0.79 of the best
        4095x4097x4093 row row: 1.00 of the best
        256x256x256 row row: 1.00 of the best
        128x4096x4096 row row: 0.99 of the best
        3072x3072x3072 row row: 1.00 of the best
        2048x512x8192 row row: 1.00 of the best
        511x513x509 row row: 0.92 of the best
        1024x1024x1024 col row: 0.95 of the best
        4096x4096x4096 col row: 0.90 of the best
        1024x1024x1024 row col: 0.99 of the best
        4096x4096x4096 row col: 1.00 of the best
    "#]]
    .assert_eq(&told::<Sgemm>(include_str!("../data/h200_sgemm.txt"), &H200));
    expect_test::expect![[r#"
        512x512x512 row col: 1.00 of the best
        1024x1024x1024 row col: 0.91 of the best
        2048x2048x2048 row col: 0.98 of the best
        3072x3072x3072 row col: 1.00 of the best
        4096x4096x4096 row col: 1.00 of the best
        6144x6144x6144 row col: 0.99 of the best
        8192x8192x8192 row col: 0.98 of the best
        4096x4096x14336 row col: 1.00 of the best
        128x8192x8192 row col: 1.00 of the best
        64x4096x4096 row col: 1.00 of the best
        512x4096x4096 row col: 1.00 of the best
        8192x8192x128 row col: 1.00 of the best
        4096x4096x64 row col: 0.98 of the best
        2048x2048x16384 row col: 1.00 of the best
        8192x28672x8192 row col: 0.97 of the best
        1024x1024x1024 row row: 0.98 of the best
        4096x4096x4096 row row: 1.00 of the best
        8192x8192x8192 row row: 0.97 of the best
        11328x14912x19416 row col: 1.00 of the best
        5736x952x10304 row col: 0.99 of the best
        744x440x11368 row col: 1.00 of the best
        10872x14960x16360 row col: 1.00 of the best
        7872x1752x12136 row col: 1.00 of the best
        17872x18248x6032 row col: 0.99 of the best
        10528x1368x15048 row col: 1.00 of the best
        16112x2176x12992 row col: 1.00 of the best
        17120x16872x8 row col: 0.88 of the best
        16384x16384x16384 row col: 0.97 of the best
        11264x14848x19456 row col: 1.00 of the best
        13632x17680x1320 row col: 0.99 of the best
        4112x9376x16992 row col: 1.00 of the best
        15608x7760x1936 row col: 1.00 of the best
        2776x18152x19392 row col: 1.00 of the best
        3696x2000x19768 row col: 1.00 of the best
        1872x7896x4776 row col: 1.00 of the best
        11952x11728x7944 row col: 1.00 of the best
        11736x1560x9192 row col: 1.00 of the best
        1688x7784x13040 row col: 0.99 of the best
        4904x10200x4336 row col: 1.00 of the best
        10888x15032x8576 row col: 0.99 of the best
        17672x5920x3200 row col: 0.98 of the best
        7736x1248x8552 row col: 1.00 of the best
        6520x744x2288 row col: 1.00 of the best
        13704x15544x7088 row col: 0.96 of the best
        6136x8920x2320 row col: 1.00 of the best
        17408x8064x3064 row col: 1.00 of the best
        7488x8536x2632 row col: 0.99 of the best
        5576x208x18040 row col: 1.00 of the best
        160x13560x16776 row col: 1.00 of the best
        304x304x16000 row col: 1.00 of the best
        1000x200x20000 row col: 0.90 of the best
        120x3000x12000 row col: 1.00 of the best
        2000x600x16000 row col: 1.00 of the best
        64x64x20000 row col: 1.00 of the best
        3000x400x8000 row col: 1.00 of the best
        13560x160x4000 row col: 1.00 of the best
        16000x16x16000 row col: 0.99 of the best
        40x12000x9000 row col: 1.00 of the best
        1200x1200x19000 row col: 1.00 of the best
        17872x248x6032 row col: 0.98 of the best
        5000x1000x12000 row col: 1.00 of the best
        400x9000x700 row col: 0.97 of the best
        15176x56x7360 row col: 0.99 of the best
        8000x64x8000 row col: 1.00 of the best
        3000x64x1000 row col: 0.97 of the best
        8304x8544x2936 row col: 0.94 of the best
        584x2072x12720 row col: 1.00 of the best
        552x15512x12616 row col: 0.94 of the best
        48x5208x3232 row col: 0.84 of the best
        14280x18280x160 row col: 0.95 of the best
        16384x16384x64 row col: 0.95 of the best
        12000x6000x256 row col: 1.00 of the best
        7472x8x11112 row col: 1.00 of the best
        8000x16x8000 row col: 1.00 of the best
        16x8192x8192 row col: 1.00 of the best
        32x4096x4096 row col: 1.00 of the best
        100x3000x5000 row col: 0.79 of the best
        8x4096x14336 row col: 1.00 of the best
        1x8192x4096 row col: 0.98 of the best
        16x28672x8192 row col: 1.00 of the best
        200x8192x8192 row col: 0.92 of the best
        72x6144x6144 row col: 1.00 of the best
    "#]]
    .assert_eq(&told::<Gemm>(include_str!("../data/h200_gemm.txt"), &H200));
}

/// The text for sm_80 on a Hopper GPU, which reaches of its memory's rate by the datasheet, 3.35 TB/s, what an H200 reaches of 4.8.
const H100: Machine = Machine { name: "NVIDIA H100 80GB HBM3", arch: Arch::Sm90, copy: 3.35 / 4.8 * H200.copy, ..H200 };

#[test]
fn the_model_of_older_architectures_chooses_well_on_what_was_measured() {
    // The CTAs that shared tiles where they were timed.
    let tried = Gemm::candidates(&Problem::rows(1, 1, 1), &H100).into_iter();
    let sharing: Vec<u32> = tried.filter(|r| r.sm80_stream_k > 0).map(|recipe| recipe.sm80_ctas).collect();
    assert_eq!(sharing, [264, 132, 132, 396, 396, 528, 396]);
    expect_test::expect![[r#"
        1024x1024x1024 row col: 1.00 of the best
        2048x2048x2048 row col: 1.00 of the best
        4096x4096x4096 row col: 1.00 of the best
        512x512x8192 row col: 0.98 of the best
        128x4096x4096 row col: 1.00 of the best
        64x4096x4096 row col: 1.00 of the best
        512x512x512 row col: 1.00 of the best
        256x256x4096 row col: 1.00 of the best
        3072x1536x768 row col: 0.92 of the best
        1504x1504x4000 row col: 0.99 of the best
        8192x8192x128 row col: 1.00 of the best
        8192x512x1024 row col: 1.00 of the best
        2048x256x2048 row col: 1.00 of the best
        1000x3000x504 row col: 0.87 of the best
        4096x4096x512 row col: 1.00 of the best
        16x8192x8192 row col: 0.91 of the best
        1200x1200x8000 row col: 0.98 of the best
        5736x952x2304 row col: 1.00 of the best
    "#]]
    .assert_eq(&told::<Gemm>(include_str!("../data/h100_gemm_sm80.txt"), &H100));
}

/// A record is of one architecture's text, and says nothing of another's.
#[test]
fn a_record_is_for_its_architecture() {
    let record = Gemm::record().expect("it was measured on an H200");
    assert_eq!(record.arch, Some(Arch::Sm90a));
    let problem = Problem { b: Major::Col, ..Problem::rows(512, 512, 512) };
    for arch in [Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90, Arch::Sm100, Arch::Sm120] {
        let machine = Machine { arch, ..Machine::of(arch) };
        let expected = gemm::choose::expect(&problem, &machine);
        assert!(expected.iter().all(|e| e.seconds() > 0.0 && e.seconds().is_finite()), "{arch}");
        let chosen = Gemm::choose(&problem, &machine, &record);
        assert_eq!(chosen, expected[0].recipe, "{arch}");
        // Of 16 tiles of 128 x 128 most multiprocessors have none.
        assert_ne!(chosen.sm80_tile, Gemm::default().sm80_tile, "{arch}");
        let mut own = record.clone();
        own.arch = Some(arch);
        assert_eq!(
            Gemm::choose(&problem, &machine, &own).settings(),
            record.alike(&problem).expect("its row").settings
        );
        assert_eq!(own.to_string().parse(), Ok(own));
    }
    assert!(Gemm::choose(&problem, &Machine::of(Arch::Sm75), &record) == Gemm::default(), "no text runs there");
    let wrong: Result<Record, _> = "gemm\nNVIDIA H200 | sm_1\n".parse();
    assert!(wrong.is_err_and(|e| e.contains("sm_1")));
}

/// Types and epilogues are the asker's; what is measured is on f16, e4m3 and i8.
#[test]
fn tensor_core_products_get_what_was_measured_of_them() {
    let record = Gemm::record().expect("it was measured on an H200");
    assert_eq!(record.to_string(), include_str!("../../src/generate/recipe/gemm/h200.txt"));
    let mut of_types = BTreeSet::new();
    for row in &record.rows {
        let own = Gemm::from_settings(&row.settings).expect("a recipe");
        let typed = Settings::parse_lines(&format!("dtype={}\npromote={}", own.dtype, own.promote));
        let chosen = Gemm::chosen_with(&row.problem, &H200, &record, &typed).expect("a choice").expect("a recipe");
        assert_eq!(chosen.settings(), row.settings, "{}", row.problem);
        of_types.insert((own.dtype.to_string(), own.promote));
    }
    assert_eq!(of_types.len(), 4, "{of_types:?}");
    // Those of other types have what is fastest for types as wide, and keep their own settings.
    let problem = Problem { b: Major::Col, ..Problem::rows(4096, 4096, 4096) };
    let tile = |given: &str| {
        let chosen = Gemm::chosen_with(&problem, &H200, &record, &Settings::parse_lines(given));
        let Gemm { tile, scale_a, out, .. } = chosen.expect("a choice").expect("a recipe");
        format!("{tile} {scale_a:?} {out}")
    };
    assert_eq!(tile("dtype=bf16"), "128x256x64 None bf16");
    assert_eq!(tile("dtype=e5m2\nout=f16"), "128x256x128 None f16");
    assert_eq!(tile("dtype=e4m3\npromote=128"), "192x128x128 None bf16");
    let blocks = "dtype=e4m3\npromote=128\nscale_a=1x128\nscale_b=128x128";
    assert_eq!(tile(blocks), "192x128x128 Some(Row) bf16");
    assert_eq!(tile("dtype=i8"), "128x128x128 None i32");
    assert_eq!(tile("dtype=tf32"), "128x256x32 None f32");
    // Of problems that differ by more the model says something, whatever their majors.
    for (m, n, k) in [(1, 1, 1), (3, 30_000, 7), (20_000, 20_000, 20_000)] {
        for (a, b) in [(Major::Row, Major::Row), (Major::Col, Major::Row), (Major::Row, Major::Col)] {
            let problem = Problem { m, n, k, a, b };
            let expected = gemm::choose::expect(&problem, &H200);
            assert!(expected.iter().all(|e| e.seconds() > 0.0 && e.seconds().is_finite()), "{problem}");
            assert!(expected.is_sorted_by(|x, y| x.seconds() <= y.seconds()), "{problem}");
            let chosen = Gemm::choose(&problem, &H200, &record);
            assert_eq!((chosen.a, chosen.b), (a, b), "{problem}");
            assert!(chosen.plan(&Targets::default()).is_ok(), "{problem}");
        }
    }
}

/// Boxes of 16 columns of an N-major B take TMA more than twice as long as those of 64: where a K-major B has such tiles, it gets others.
#[test]
fn an_n_major_b_is_copied_in_wide_boxes() {
    let record = Gemm::record().expect("it was measured on an H200");
    let chosen = |b, [m, n, k]: [u64; 3]| {
        let problem = Problem { b, ..Problem::rows(m, n, k) };
        Gemm::choose(&problem, &H200, &record).tile.0[1]
    };
    let problems = [[5912, 392, 7168], [9248, 2720, 2328], [11912, 352, 8672], [9472, 2880, 2328], [14000, 264, 3000]];
    let narrow = |b| problems.into_iter().filter(|problem| !chosen(b, *problem).is_multiple_of(32)).count();
    assert_eq!(narrow(Major::Row), 0);
    assert!(narrow(Major::Col) > 2, "tiles as wide as D's columns need are candidates");
}

/// What an H200 was fastest with (`benches/NOTES.md`): each multiprocessor reads its part of the weights once. Where that is 16 columns,
/// two of them have 32, and half of K each.
#[test]
fn few_rows_are_multiplied_with_each_weight_read_once() {
    let record = Gemm::record().expect("it was measured on an H200");
    for m in [1, 16, 64] {
        let chosen = |n| {
            let Gemm { tile, split_k, stream_k, .. } =
                Gemm::choose(&Problem { b: Major::Col, ..Problem::rows(m, n, 7168) }, &H200, &record);
            (tile.to_string(), split_k, stream_k)
        };
        assert_eq!(chosen(2112), ("64x32x64".to_owned(), 2, 0), "{m}");
        assert_eq!(chosen(24576), ("64x192x64".to_owned(), 1, 0), "{m}");
    }
}

/// Tiles that are made for a problem fit wherever those of the lists do, and no two candidates are the same.
#[test]
fn candidates_of_few_columns_are_recipes() {
    let (sm90a, mut fitted) = (Targets::new([Arch::Sm90a]).expect("not empty"), BTreeSet::new());
    let usual = Gemm::candidates(&Problem { b: Major::Col, ..Problem::rows(1, 1, 4096) }, &H200);
    for n in (1..=200).map(|eighth| 8 * eighth) {
        let problem = Problem { b: Major::Col, ..Problem::rows(5000, n, 4096) };
        let all = Gemm::candidates(&problem, &H200);
        for (index, recipe) in all.iter().enumerate() {
            assert!(!all[..index].contains(recipe), "{problem}: {recipe:?} twice");
            if !usual.contains(recipe) && fitted.insert(recipe.settings().to_string()) {
                let refused = recipe.plan(&sm90a).err().map(|refused| refused.to_string());
                assert_eq!(refused, None, "{problem}");
                let of = |n: u64, tile: u32| n.div_ceil(tile.into()) * u64::from(tile);
                assert!(of(n, recipe.tile.0[1]) < n + 6 * 32, "{problem}: {recipe:?} computes on zeros");
            }
        }
    }
    assert!(fitted.len() > 30, "{}", fitted.len());
}

#[test]
fn the_candidates_of_the_ladder_are_recipes() {
    let text = include_str!("../../benches/data/sgemm_ladder_candidates.txt");
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|line| !line.is_empty());
    let mut planned = 0;
    for line in lines {
        let recipe = Sgemm::from_settings(&Settings::parse_lines(&line.replace(';', "\n"))).expect(line);
        let plan = recipe.plan(&Targets::new([Arch::Sm90a]).expect("not empty"));
        planned += plan.map(|_| 1).unwrap_or_else(|refused| panic!("{line}\n{refused}"));
    }
    assert!(planned > 10, "{planned}");
}
