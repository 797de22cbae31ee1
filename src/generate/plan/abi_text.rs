//! An ABI as text, and the digest that tells whether it still means the same.

use crate::diagnostic::{BindError, debug_as_display};
use crate::digest::Digest;
use crate::plan::{Abi, Binding, Operand};
use crate::units::Elements;
use crate::view::{ViewLayout, ViewRef};

/// The ABI of a kernel that is not what this crate would launch.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum AbiError {
    /// It cannot be read.
    #[error(
        "the ABI of a kernel cannot be read: {reason}\n  \
         because: it was written by another version of cutemplate, or is damaged\n  \
         help:    build the kernel again, with the version in [dependencies]"
    )]
    Unread {
        /// Why.
        reason: String,
    },
    /// It is not the one that the kernel was compiled with, or this version makes other grids and parameters of it.
    #[error(
        "kernel `{kernel}`: its ABI means something else here than where it was compiled\n  \
         found:    {found}\n  \
         required: {required}, which the build wrote down\n  \
         because:  a launch with other grids or parameters would touch other memory\n  \
         help:     build it again, or use the version of cutemplate that built it"
    )]
    Digest {
        /// The kernel.
        kernel: String,
        /// The digest that this version computes.
        found: Digest,
        /// The digest that the build recorded.
        required: Digest,
    },
}

debug_as_display!(AbiError);

impl Abi {
    /// As JSON, on one line; the same ABI gives the same bytes.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self.draft()).unwrap_or_else(|defect| unreachable!("every field has a text: {defect}"))
    }

    /// The digest that is compared before a kernel is launched. It covers the text with the recipe and its function. It
    /// also covers the launches that this version of the crate makes for problems of its own choice.
    pub fn digest(&self) -> Digest {
        self.digest_of(&self.to_json())
    }

    fn digest_of(&self, text: &str) -> Digest {
        Digest::of_parts([text.as_bytes(), &self.launched()])
    }

    /// Reads what [`Abi::to_json`] wrote, where the digest is the one that was written down then.
    ///
    /// # Errors
    /// It is not, or the text is none.
    pub(crate) fn open(text: &str, required: Digest) -> Result<Self, AbiError> {
        let unread = |e: serde_json::Error| AbiError::Unread { reason: e.to_string() };
        let abi = Abi::new(serde_json::from_str(text).map_err(unread)?);
        let found = abi.digest_of(text);
        if found == required {
            Ok(abi)
        } else {
            Err(AbiError::Digest { kernel: abi.name().to_owned(), found, required })
        }
    }

    /// The launches of a few problems: small and odd, padded and off the alignment, whole, of one element, with
    /// scalars of 0.
    fn launched(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(example) = self.problem_shape().map(|shape| shape.example().to_vec()) else {
            return self.launched_by_its_rule();
        };
        let whole: Vec<i64> = example.iter().map(|extent| (extent + 255) & !127).collect();
        let ones = vec![1; example.len()];
        for (problem, off, scalar) in [
            (&example, 0, 1.0),
            (&example, 1, 0.5),
            (&whole, 0, 1.0),
            (&whole, 0, 0.0),
            (&whole, 1, 1.0),
            (&ones, 0, 1.0),
        ] {
            let scalars = vec![scalar; self.scalars().len()];
            match self.views(problem, off).map(|views| self.bind_with(&views, &scalars)) {
                Some(Ok(binding)) => binding.append(&mut out),
                Some(Err(BindError::Refused(found))) => {
                    out.extend(found.iter().flat_map(|one| one.code.code().bytes()));
                }
                Some(Err(BindError::Defect(_))) => out.push(1),
                None => out.push(0),
            }
            out.push(b'\n');
        }
        out
    }

    /// The same where nobody knows a problem: what the rule makes of views of a few extents, whether its demands hold or not.
    fn launched_by_its_rule(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (extent, scalar) in [(1, 1.0), (33, 0.5), (4096, 3.0)] {
            let view = |(operand, number): (&Operand, u64)| {
                let shape: Vec<i64> = (extent..).take(operand.strides.len()).collect();
                let (layout, available) = (ViewLayout::row_major(&shape)?, Elements(1 << 36));
                Some(ViewRef { dtype: operand.dtype, ptr: number << 40, available, layout, access: operand.access })
            };
            let bound = || {
                let views = self.operands().iter().zip(1..).map(view).collect::<Option<Vec<_>>>()?;
                let scalars = vec![scalar; self.scalars().len()];
                let geometry = self.draft().rule.geometry(self.params(), &views, &scalars).ok()??;
                Binding::new(self, &views, geometry).ok()
            };
            match bound() {
                Some(binding) => binding.append(&mut out),
                None => out.push(1),
            }
            out.push(b'\n');
        }
        out
    }

    /// Views of a problem, each in its own memory, `off` elements after a multiple of 256 bytes, with a gap of as many
    /// elements between rows.
    fn views(&self, problem: &[i64], off: i64) -> Option<Vec<ViewRef>> {
        let shapes = self.shapes(problem)?;
        let all = self.operands().iter().zip(&shapes).zip(1..);
        let view = |((operand, shape), number): ((&Operand, &Vec<i64>), u64)| {
            let row = shape.iter().max().map(|most| most + off).filter(|_| off > 0);
            let layout: ViewLayout = operand.layout(shape, row)?;
            let ptr = (number << 40) + off.unsigned_abs() * operand.dtype.bytes().0;
            let available = Elements(1 << 36);
            Some(ViewRef { dtype: operand.dtype, ptr, available, layout, access: operand.access })
        };
        all.map(view).collect()
    }
}

impl Binding {
    /// What it launches, as bytes.
    fn append(&self, out: &mut Vec<u8>) {
        for launch in self.launches() {
            let numbers = [launch.entry as u32, launch.dynamic_smem].into_iter();
            out.extend(numbers.chain(launch.grid).chain(launch.block).flat_map(u32::to_le_bytes));
        }
        out.extend(self.params());
        for map in self.tensor_maps() {
            out.extend(map.spec.to_string().bytes().chain([u8::from(map.in_workspace)]));
        }
        out.extend(self.workspace().map_or(0, |workspace| workspace.bytes.0).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Targets;
    use crate::cuda::{Cuda, Entry};
    use crate::dtype::DType;
    use crate::plan::Draft;
    use crate::plan::ParamType;
    use crate::plan::Plan;
    use crate::plan::tests::two_passes;
    use crate::recipe::FAMILIES;
    use crate::settings::Settings;
    use crate::view::Access;

    /// A plan of each family, of each structure of elementwise kernels, and of a kernel of one's own.
    fn plans() -> impl Iterator<Item = Plan> {
        let own = Entry::new("scale")
            .operand("x", DType::F32, Access::Read, "(rows,cols):(?,1)")
            .operand("y", DType::F32, Access::Write, "(rows,cols):(?,1)")
            .extent("rows", "x.0")
            .extent("cols", "x.1")
            .scalar("factor", ParamType::F16)
            .grid("ceil_div(rows, 4)")
            .block_of(["min(round_up(cols, 32), 1024)", "1", "1"], 1024)
            .shared("rows * 4");
        let own = Cuda::text("").entry(own).plans("scale", "", &Targets::default()).expect("a right declaration");
        let quick = |settings: &&&str| !settings.contains("variant=pipelined") || settings.contains("split_k");
        let texts = move |family: &'static crate::recipe::Family| family.catalogue.iter().filter(quick).take(7);
        let ours = FAMILIES.iter().flat_map(move |family| {
            texts(family).map(|text| {
                let plan = family.usual_plan(&Settings::parse_lines(text));
                plan.expect("the catalogue is legal")
            })
        });
        ours.chain(own)
    }

    #[test]
    fn a_kernel_is_launched_by_its_text_as_by_its_plan() {
        let mut parts = 0;
        for plan in plans() {
            for text in plan.texts() {
                let abi = text.abi();
                let read = Abi::open(&abi.to_json(), abi.digest()).expect("it was written just now");
                assert_eq!(read.to_json(), abi.to_json(), "{}", abi.name());
                assert_eq!(read.launched(), abi.launched(), "{}", abi.name());
                // Some launch is one, so that there is something to compare.
                assert!(abi.launched().len() > 6 * 16, "{}, {}", abi.name(), abi.launched().len());
                parts += 1;
            }
        }
        assert!(parts > 20, "{parts}");
    }

    #[test]
    fn what_is_launched_otherwise_is_refused() {
        let mut derived = 0;
        let texts = plans().flat_map(|plan| plan.texts().to_vec());
        for abi in texts.map(|text| text.abi().clone()) {
            let (text, digest) = (abi.to_json(), abi.digest());
            // One block more, as a version that counts otherwise would launch it.
            let mut more = abi.draft().clone();
            more.rule.grids.iter_mut().for_each(|grid| grid.blocks[0] = grid.blocks[0].clone() + 1);
            let digest_of_more = Digest::of_parts([text.as_bytes(), &Abi::new(more).launched()]);
            assert!(Abi::open(&text, digest_of_more).is_err(), "{}", abi.name());
            // Another value of a parameter, of equally many bytes.
            let mut other = abi.draft().clone();
            other.rule.derived.iter_mut().flatten().for_each(|value| *value = value.clone() + 1);
            if other.rule.derived.iter().any(Option::is_some) {
                let digest_of_other = Digest::of_parts([text.as_bytes(), &Abi::new(other).launched()]);
                assert!(Abi::open(&text, digest_of_other).is_err(), "{}", abi.name());
                derived += 1;
            }
            // The comparison covers the function, though a + b and a * b are launched alike.
            let other = Abi::new(Draft { recipe: abi.recipe().replace('+', "*") + " ", ..abi.draft().clone() });
            assert!(Abi::open(&other.to_json(), digest).is_err(), "{}", abi.name());
        }
        assert!(derived > 5, "{derived} kernels have parameters that follow from others");
    }

    #[test]
    fn texts_that_are_none_are_refused() {
        let text = two_passes().abi().to_json();
        let open = |text: &str| Abi::open(text, Digest::of(b"")).expect_err("refused").to_string();
        let told = [
            open(""),
            open(&text.replace("\"family\":\"two_passes\"", "\"family\":\"two passes\"")),
            open(&text.replace("sm_80", "sm_20")),
            open(&text.replace("\"family\"", "\"tribe\"")),
            open(&text.replace("lt 0 $2", "lt 0")),
            open(&text),
        ];
        let told: Vec<&str> = told.iter().filter_map(|error| error.lines().next()).collect();
        expect_test::expect![[r#"
            the ABI of a kernel cannot be read: EOF while parsing a value at line 1 column 0
            the ABI of a kernel cannot be read: a name is 1 to 255 letters, digits and underscores at line 1 column 22
            the ABI of a kernel cannot be read: unknown architecture `sm_20`; known are sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_120 at line 1 column 121
            the ABI of a kernel cannot be read: unknown field `tribe`, expected one of `family`, `rust_type`, `name`, `recipe`, `settings`, `targets`, `operands`, `params`, `entries`, `scalars`, `problem`, `call`, `rule` at line 1 column 8
            the ABI of a kernel cannot be read: `and lt 0 lt 0 $3` is not an integer expression at line 1 column 1218
            kernel `two_passes`: its ABI means something else here than where it was compiled"#]].assert_eq(&told.join("\n"));
    }
}
