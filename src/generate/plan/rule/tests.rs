use super::*;
use crate::dtype::DType;
use crate::plan::WORKSPACE;
use crate::units::Elements;
use crate::view::{Access, ViewLayout};

/// D rows of a matrix, `whole` where they are multiples of 8, and a second kernel over parts.
fn params() -> ParamStruct {
    let field = |name: &str, ty, given| (name.to_owned(), ty, String::new(), given);
    ParamStruct::new([
        field("d", ParamType::MutPtr, Given::Address { tensor: 0 }),
        field(WORKSPACE, ParamType::MutPtr, Given::Follows),
        field("ldd", ParamType::I64, Given::Stride { tensor: 0, mode: 0 }),
        field("m", ParamType::I32, Given::ExtentUnless { tensor: 0, mode: 0, zero: 0 }),
        field("whole", ParamType::I32, Given::Follows),
        field("alpha", ParamType::F32, Given::Scalar(0)),
    ])
}

fn rule() -> Rule {
    let mut rule = Rule::new(&params(), Reach::default());
    let [d, ldd, m] = ["d", "ldd", "m"].map(|name| rule.param(name));
    rule.derive("whole", d.divides_by(16).and(ldd.divides_by(8)));
    let tiles = rule.steps.set("tiles", m.clone().ceil_div(128));
    rule.grid(Int::from(0).less(m.clone()), [tiles.clone(), Int::from(1), Int::from(1)]);
    rule.grid(Int::from(1).less(tiles.clone()), [Int::from(1), tiles.clone(), Int::from(1)]);
    rule.overlaps_where(tiles.clone().at_most(2));
    rule.workspace = tiles * 64;
    rule
}

fn geometry(ptr: u64, ldd: i64, m: i64, alpha: f64) -> Option<Geometry> {
    let layout = ViewLayout::strided(&[m, 8], &[ldd, 1]).expect("a layout");
    let view = ViewRef { dtype: DType::F16, ptr, available: Elements(1 << 40), layout, access: Access::Write };
    rule().geometry(&params(), &[view], &[alpha]).expect("its tensors")
}

#[test]
fn parameters_and_grids_follow_from_what_is_given() {
    let found = geometry(32, 24, 300, 0.5).expect("it fits");
    let grids = [([3, 1, 1], true), ([1, 3, 1], false)]
        .map(|(blocks, overlaps)| Some(Grid { blocks, overlaps, shared: None, threads: None }));
    assert_eq!(found.grids, grids);
    assert_eq!(found.workspace, Bytes(192));
    let expected = [
        ParamValue::Ptr(32),
        ParamValue::Ptr(0),
        ParamValue::I64(24),
        ParamValue::I32(300),
        ParamValue::I32(1),
        ParamValue::F32(0.5),
    ];
    assert_eq!(found.values, expected);
    let empty = geometry(8, 24, 0, 0.5).expect("it fits");
    assert_eq!((&empty.grids[..], empty.values[4]), (&[None, None][..], ParamValue::I32(0)));
    // Nothing is asked for where the scalar is 0.
    assert_eq!(geometry(32, 24, 300, -0.0).expect("it fits").values[3], ParamValue::I32(0));
}

#[test]
fn a_rule_is_read_as_it_is_written() {
    let text = serde_json::to_string(&rule()).expect("a text");
    assert_eq!(serde_json::from_str::<Rule>(&text).expect("it was written just now"), rule());
    // A reference to nothing is refused when it is evaluated.
    for (found, other) in [("[6,", "[60,"), ("$0", "$70")] {
        let broken: Rule = serde_json::from_str(&text.replace(found, other)).expect("a rule");
        assert_ne!(broken, rule());
        assert_eq!(broken.of_values(&params(), &[0; 7], &[1.0]).zip(broken.steps.eval(&[0; 6])), None, "{found}");
    }
}

#[test]
fn what_the_numbers_do_not_reach_is_refused() {
    assert!(geometry(0, 8, 65535 * 128, 1.0).is_some());
    assert!(geometry(0, 8, 65535 * 128 + 1, 1.0).is_none(), "blocks along y");
    assert!(geometry(0, 8, 1 << 40, 1.0).is_none(), "32 bits");
    assert_eq!(rule().geometry(&params(), &[], &[1.0]), Err(NotItsTensors));
    let mut steps = Steps::default();
    let n = steps.input("n");
    steps.set("square", n.clone() * n);
    assert_eq!(steps.eval(&[1 << 31]), Some(vec![1 << 31, 1 << 62]));
    assert_eq!(steps.eval(&[1 << 32]), None, "64 bits");
}

#[test]
fn a_map_is_of_a_tensor_or_of_the_workspace() {
    let field = |name: &str, ty, given| (name.to_owned(), ty, String::new(), given);
    let params = ParamStruct::new([
        field("d", ParamType::MutPtr, Given::Address { tensor: 0 }),
        field("map", ParamType::TensorMap, Given::Follows),
    ]);
    let mut rule = Rule::new(&params, Reach::default());
    let d = rule.param("d");
    let lies = rule.steps.set("lies", d.clone().divides_by(16));
    rule.workspace = lies.clone().select(0, 384);
    rule.maps.push(MapRule {
        param: 1,
        when: Int::from(0).less(d.clone()),
        dtype: MapType::Of(DType::F16),
        in_workspace: lies.clone().is(0),
        address: lies.select(d, 128),
        dims: vec![8.into(), 8.into()],
        strides: vec![16.into()],
        extents: vec![8.into(), 8.into()],
        swizzle: MapSwizzle::None,
    });
    let maps = |ptr| {
        let (layout, available) = (ViewLayout::matrix([8, 8], 8), Elements(64));
        let view = ViewRef { dtype: DType::F16, ptr, available, layout, access: Access::Write };
        let found = rule.geometry(&params, &[view], &[]).expect("its tensors").expect("it fits");
        found.maps.iter().map(|map| (map.param_offset, map.in_workspace, map.spec.address)).collect::<Vec<_>>()
    };
    assert_eq!(maps(32), [(128, false, 32)]);
    assert_eq!(maps(34), [(128, true, 128)]);
    assert_eq!(maps(0), []);
}

#[test]
#[should_panic(expected = "the kernel has no parameter `lda`; it has d, workspace, ldd, m, whole, alpha")]
fn a_parameter_that_there_is_not_has_no_value() {
    rule().param("lda");
}

#[test]
#[should_panic(expected = "the kernel has no parameter `tiles`; it has d, workspace, ldd, m, whole, alpha")]
fn only_parameters_are_derived() {
    rule().derive("tiles", 1.into());
}

#[test]
fn what_a_kernel_may_lack_is_one() {
    let mut rule = rule();
    rule.derive_if_any("batches", 3.into());
    assert_eq!(rule.param_or_one("batches"), Int::Const(1));
    assert_eq!(rule.param_or_one("m"), rule.param("m"));
}
