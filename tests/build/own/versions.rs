//! Bundles of other versions, of a kernel of one's own and of a recipe: the same bytes with another format, with fields that this version
//! does not know, or without some that it needs. Each is read and runs, or is refused in words.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use cutemplate::arch::Arch;
use cutemplate::artifact::Kind;
use cutemplate::build::Config;
use cutemplate::bundle::Bundle;
use cutemplate::digest::Digest;
use cutemplate::exec::Kernel;
use cutemplate::recipe::{Sum, TensorArgs};
use cutemplate::view::{Arguments, View, ViewLayout, ViewMut};
use serde_json::{Map, Value, json};

use super::{Own, twice};
use crate::bundle::{rewritten, unchecked};

/// A bundle of one kernel, and what runs it.
struct Shipped {
    name: &'static str,
    bytes: Vec<u8>,
    runs: fn(&Bundle<'_>) -> Result<(), String>,
}

fn loaded<R: Kind>(bundle: &Bundle<'_>, name: &str) -> Result<Kernel<R>, String> {
    let artifact = bundle.kernel(name).map_err(|error| error.to_string())?;
    Kernel::load(&artifact).map_err(|error| error.to_string())
}

fn own() -> Shipped {
    let runs = |bundle: &Bundle<'_>| {
        let mut y = [3.0_f32, 4.0];
        let args = Arguments::<Own, _>::new().write(ViewMut::host_strided(&mut y, ViewLayout::vector(2)));
        loaded::<Own>(bundle, "twice")?.launch(args).unwrap();
        assert_eq!(y, [6.0, 8.0]);
        Ok(())
    };
    let (bytes, _) = Config::new().arch(Arch::Sm80).cuda("twice", twice()).pack().unwrap();
    Shipped { name: "twice", bytes, runs }
}

fn recipe() -> Shipped {
    let runs = |bundle: &Bundle<'_>| {
        let (a, mut y) = ([1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0_f32; 2]);
        let sums = ViewMut::host_strided(&mut y, ViewLayout::vector(2));
        let args = TensorArgs::new().input(View::host(&a, [2, 3], 3)).output(sums).scalar(0.5);
        loaded::<Sum>(bundle, "row_sums")?.launch(args).unwrap();
        assert_eq!(y, [3.0, 7.5]);
        Ok(())
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/row_sums/kernels.bundle");
    Shipped { name: "row_sums", bytes: fs::read(path).unwrap(), runs }
}

impl Shipped {
    fn tried(&self, bytes: Vec<u8>) -> Result<(), String> {
        let bundle = unchecked(bytes).map_err(|error| error.to_string())?;
        (self.runs)(&bundle)
    }

    /// With other contents, whose sha256 is right.
    fn with_contents(&self, change: impl Fn(&mut Value)) -> Result<(), String> {
        let bytes = rewritten(&self.bytes, |contents, _| {
            let before = contents.clone();
            change(contents);
            assert_ne!(*contents, before, "{}: nothing was changed", self.name);
        });
        self.tried(bytes)
    }

    /// The ABI of its text.
    fn abi(&self) -> String {
        let found = RefCell::new(String::new());
        rewritten(&self.bytes, |contents, rest| {
            let (at, len) = self.place_of_abi(contents);
            found.replace(String::from_utf8(rest[at..at + len].to_vec()).unwrap());
        });
        found.into_inner()
    }

    fn contents(&self) -> Value {
        let found = RefCell::new(Value::Null);
        rewritten(&self.bytes, |contents, _| drop(found.replace(contents.clone())));
        found.into_inner()
    }

    fn place_of_abi(&self, contents: &Value) -> (usize, usize) {
        let len = |file: &Value| file["bytes"].as_u64().unwrap() as usize;
        let files = contents["files"].as_array().unwrap();
        let number = files.iter().position(|file| file["name"] == format!("{}.abi.json", self.name)).unwrap();
        (files[..number].iter().map(len).sum(), len(&files[number]))
    }

    /// With another ABI, whose sha256 as a file is right.
    fn with_abi(&self, abi: &str) -> Result<(), String> {
        let bytes = rewritten(&self.bytes, |contents, rest| {
            let (at, len) = self.place_of_abi(contents);
            let name = format!("{}.abi.json", self.name);
            let file = contents["files"].as_array_mut().unwrap().iter_mut().find(|file| file["name"] == name).unwrap();
            file["bytes"] = abi.len().into();
            file["sha256"] = Digest::of(abi.as_bytes()).to_string().into();
            rest.splice(at..at + len, abi.bytes());
        });
        self.tried(bytes)
    }
}

fn both() -> [Shipped; 2] {
    [own(), recipe()]
}

#[test]
fn the_version_that_wrote_a_bundle_is_told_and_its_format_decides() {
    for shipped in both() {
        assert_eq!(shipped.tried(shipped.bytes.clone()), Ok(()));
        for version in ["0.0.1", "7.8.9-alpha"] {
            assert_eq!(shipped.with_contents(|contents| contents["cutemplate"] = json!(version)), Ok(()), "{version}");
        }
        for format in [0_u32, 1, 3, 255, 256, u32::MAX] {
            let other = [&shipped.bytes[..16], &format.to_le_bytes(), &shipped.bytes[20..]].concat();
            let told = shipped.tried(other).unwrap_err();
            let words =
                [format!("found:    format {format}\n"), "required: format 2".into(), "make it again with".into()];
            assert!(told.starts_with("error[bundle-format]") && words.iter().all(|w| told.contains(w)), "{told}");
        }
    }
}

/// Where there are fields of the contents.
const PLACES: [&str; 6] =
    ["", "/licences/0", "/kernels/0", "/kernels/0/texts/0", "/kernels/0/texts/0/manifest", "/files/0"];

/// What a launch does not read, where later versions may tell more.
const TELL_ONLY: [&str; 2] = ["/kernels/0/texts/0/manifest", "/files/0"];

fn fields<'a>(contents: &'a mut Value, place: &str) -> &'a mut Map<String, Value> {
    contents.pointer_mut(place).unwrap().as_object_mut().unwrap()
}

#[test]
fn contents_with_more_or_fewer_fields_are_refused_by_their_names() {
    for shipped in both() {
        let mut missing = 0;
        for place in PLACES {
            let told =
                shipped.with_contents(|contents| drop(fields(contents, place).insert("of_tomorrow".into(), json!(1))));
            match told {
                Ok(()) => assert!(TELL_ONLY.contains(&place), "{place}"),
                Err(told) => {
                    assert!(told.starts_with("error[bundle-contents]"), "{told}");
                    assert!(told.contains("unknown field `of_tomorrow`"), "{told}");
                }
            }
            for name in fields(&mut shipped.contents(), place).keys() {
                match shipped.with_contents(|contents| drop(fields(contents, place).remove(name))) {
                    Ok(()) => assert!(TELL_ONLY.contains(&place) && name == "ptx", "{place}/{name} is not needed"),
                    Err(told) => {
                        assert!(told.contains(&format!("missing field `{name}`")), "{place}/{name}: {told}");
                        missing += 1;
                    }
                }
            }
        }
        assert!(missing > 20, "{missing}");
    }
}

/// Each field of an ABI that is gone, each that is one too many, and bytes that are others.
#[test]
fn an_abi_that_is_not_the_one_that_was_compiled_is_refused() {
    const OTHER: &str = "its ABI means something else here than where it was compiled";
    for shipped in both() {
        let text = shipped.abi();
        let abi: Value = serde_json::from_str(&text).unwrap();
        let with = |place: &str, change: &dyn Fn(&mut Map<String, Value>)| {
            let mut other = abi.clone();
            change(fields(&mut other, place));
            shipped.with_abi(&other.to_string()).unwrap_err()
        };
        let (mut objects, mut places) = (0, vec![String::new()]);
        while let Some(place) = places.pop() {
            let value = abi.pointer(&place).unwrap();
            if let Value::Object(of) = value {
                objects += 1;
                let told = with(&place, &|of| drop(of.insert("of_tomorrow".into(), json!(1))));
                assert!(told.contains("the ABI of a kernel cannot be read: "), "{place}: {told}");
                for name in of.keys() {
                    let told = with(&place, &|of| drop(of.remove(name)));
                    assert!(told.contains("cannot be read: ") || told.contains(OTHER), "{place}/{name}: {told}");
                    places.push(format!("{place}/{name}"));
                }
            }
            places.extend((0..value.as_array().map_or(0, Vec::len)).map(|number| format!("{place}/{number}")));
        }
        assert!(objects > 10, "{objects}");
        let told = with("", &|of| drop(of.insert("of_tomorrow".into(), json!(1))));
        assert!(
            told.contains("unknown field `of_tomorrow`") && told.contains("help:    build the kernel again"),
            "{told}"
        );
        for at in (0..text.len()).step_by(7) {
            let mut other = text.clone().into_bytes();
            other[at] ^= 1;
            let Ok(other) = String::from_utf8(other) else { continue };
            let told = shipped.with_abi(&other).unwrap_err();
            assert!(
                ["cannot be read", OTHER, "of family"].iter().any(|words| told.contains(words)),
                "byte {at}: {told}"
            );
        }
        assert!(shipped.with_abi(&format!("{text} ")).unwrap_err().contains(OTHER));
        // The digest is that of another.
        let told = shipped.with_contents(|contents| {
            contents["kernels"][0]["texts"][0]["digest"] = json!(Digest::of(b"another").to_string());
        });
        let told = told.unwrap_err();
        assert!(told.contains(OTHER) && told.contains("help:     build it again"), "{told}");
    }
}

/// What was said of a kernel that nobody vouches for does not become a vow.
#[test]
fn a_bundle_vouches_for_nobody() {
    let shipped = own();
    let text = shipped.abi();
    let vow = text.replacen(r#"["vouched","no"]"#, r#"["vouched","yes"]"#, 1);
    assert_ne!(vow, text);
    assert!(shipped.with_abi(&vow).unwrap_err().contains("its ABI means something else here"));
    let told = shipped.with_contents(|contents| {
        let settings = contents["kernels"][0]["settings"].as_str().unwrap().replace("vouched=no", "vouched=yes");
        contents["kernels"][0]["settings"] = json!(settings);
    });
    // The settings of the contents tell what a build compares. A launch reads the ABI.
    assert_eq!(told, Ok(()));
}
