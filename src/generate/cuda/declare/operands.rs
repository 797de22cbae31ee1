//! The tensors of an entry: what they are declared as, and what a launch demands of them.

use super::super::entry::Operand as Tensor;
use super::super::layout::{Declared, Part};
use super::{Draft, refuse};
use crate::plan::checks::Checks;
use crate::plan::{DemandKind, Given, Int, IntOp, Operand, interned};

impl Draft<'_> {
    /// The operands, the names of their extents, and what their layouts demand.
    pub(super) fn operands(&mut self, checks: &mut Checks) -> Vec<Operand> {
        let tensors = self.flat.operands.clone();
        let layouts: Vec<Option<Declared>> = tensors
            .iter()
            .map(|operand| match Declared::read(&operand.layout) {
                Ok(layout) => Some(layout),
                Err(why) => {
                    refuse(
                        checks,
                        format!("operand `{}`: {why}", operand.name),
                        "strides, or a shape, `:` and strides: (?,1)",
                    );
                    None
                }
            })
            .collect();
        let rank = |layout: &Option<Declared>| layout.as_ref().map_or(0, |layout| layout.strides.len());
        self.scope.tensors = tensors.iter().zip(&layouts).map(|(t, layout)| (t.name.clone(), rank(layout))).collect();
        if tensors.is_empty() {
            refuse(checks, "no operand".into(), "at least one tensor that the kernel reads or writes");
        }
        // Names first, wherever they stand.
        for (tensor, layout) in layouts.iter().enumerate() {
            for (mode, part) in layout.iter().flat_map(|layout| layout.extents.iter().enumerate()) {
                let Part::Is(name) = part else { continue };
                let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                let is_scalar = self.scope.scalars.iter().any(|(scalar, ..)| scalar == name);
                if is_name && !is_scalar && !self.scope.names.contains_key(name) {
                    let value = self.scope.input(Given::Extent { tensor, mode });
                    self.scope.names.insert(name.clone(), value);
                }
            }
        }
        for (tensor, (operand, layout)) in tensors.iter().zip(&layouts).enumerate() {
            self.layout_demands(tensor, operand, layout.as_ref(), checks);
        }
        let made = tensors.iter().zip(&layouts).map(|(operand, layout)| Operand {
            name: interned(operand.name.clone()),
            param: operand.name.clone(),
            dtype: operand.dtype,
            access: operand.access,
            strides: layout.as_ref().map_or_else(Vec::new, Declared::mode_strides),
            in_place: operand.in_place,
        });
        made.collect()
    }

    fn layout_demands(&mut self, tensor: usize, operand: &Tensor, layout: Option<&Declared>, checks: &mut Checks) {
        let name = &operand.name;
        let Some(layout) = layout else { return };
        for mode in 0..layout.strides.len() {
            let extent = self.scope.input(Given::Extent { tensor, mode });
            let (label, why) = (format!("{name}.{mode}"), "the kernel is declared for this shape");
            self.equal(DemandKind::Extent, (&label, extent.clone()), &layout.extents[mode], why, None, checks);
            let stride = self.scope.input(Given::Stride { tensor, mode });
            let (label, why) = (format!("stride({name}, {mode})"), "the kernel is declared for these strides");
            // Views are checked for 0 and 1 by the operand itself, and the stride of one coordinate is never used.
            if !matches!(layout.strides[mode], Part::Fixed(0 | 1)) {
                self.equal(DemandKind::Stride, (&label, stride), &layout.strides[mode], why, Some(extent), checks);
            }
        }
        if operand.align > 0 {
            let bytes = operand.align;
            if !bytes.is_power_of_two() || bytes > 256 || bytes < operand.dtype.bytes().0 {
                let found = format!("operand `{name}` at multiples of {bytes} bytes");
                refuse(checks, found, "a power of two, from the size of an element to 256");
                return;
            }
            let address = self.scope.input(Given::Address { tensor });
            let condition = address.clone().divides_by(bytes as i64);
            let past = ("past a multiple".into(), address.clone() % bytes as i64);
            let required = format!("{name} at a multiple of {bytes} bytes");
            let because = "the kernel is declared to move whole vectors";
            let found = vec![(format!("address({name})"), address), past];
            self.demand(DemandKind::Alignment, condition, required, because, found);
        }
    }

    /// Demands that a value is what a layout says, unless the extent is 1 and a stride therefore nothing.
    fn equal(
        &mut self,
        kind: DemandKind,
        (label, value): (&str, Int),
        part: &Part,
        because: &str,
        unless_one: Option<Int>,
        checks: &mut Checks,
    ) {
        let (want, text) = match part {
            Part::Any => return,
            Part::Fixed(number) => (Int::Const(*number), number.to_string()),
            Part::Is(text) => match self.scope.read(text) {
                Ok(want) => (want, text.clone()),
                Err(why) => {
                    refuse(checks, format!("{label}: {why}"), "an integer expression");
                    return;
                }
            },
        };
        if want == value {
            return;
        }
        let condition = value.clone().is(want.clone());
        let condition = match unless_one {
            Some(extent) => extent.at_most(1).op(IntOp::Or, condition),
            None => condition,
        };
        let mut found = vec![(label.to_owned(), value)];
        if matches!(part, Part::Is(_)) {
            found.push((text.clone(), want));
        }
        self.demand(kind, condition, format!("{label} = {text}"), because, found);
    }
}
