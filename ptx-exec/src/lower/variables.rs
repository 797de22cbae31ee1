//! Places variables of the module, of blocks and of threads, and parameters.

use super::regs::operands;
use super::{Binding, Lower, Result, VariablePlace};
use crate::ast::{Function, Variable};
use crate::code::{Base, GlobalVariable, LocalVariable, ParamInfo, SharedVariable};
use crate::error::Error;
use crate::parse::clip;
use crate::types::Space;

impl<'a> Lower<'a, '_> {
    /// Drops the module's shared variables that the entry does not use, as ptxas does. They are the first `of_module` ones.
    pub(super) fn drop_unused(&mut self, of_module: usize) {
        let code = &mut self.code;
        let mut is_read = vec![false; code.constants.len()];
        for inst in &mut code.insts {
            operands(inst, &mut code.list, |register, _| {
                if let Some(constant) = self.constant_of.get(register) {
                    is_read[*constant] = true;
                }
            });
        }
        let mut used = vec![false; code.shared.len()];
        used[of_module..].fill(true);
        for (constant, _) in code.constants.iter().zip(&is_read).filter(|(_, is_read)| **is_read) {
            if let Base::Shared(i) | Base::SharedGeneric(i) = constant.base {
                used[i as usize] = true;
            }
        }
        let mut left = 0;
        let number: Vec<u32> = used.iter().map(|used| (left, left += u32::from(*used)).0).collect();
        for constant in &mut code.constants {
            match &mut constant.base {
                Base::Shared(i) | Base::SharedGeneric(i) if used[*i as usize] => *i = number[*i as usize],
                // It is never read.
                Base::Shared(_) | Base::SharedGeneric(_) => constant.base = Base::Zero,
                _ => {}
            }
        }
        let mut used = used.iter();
        code.shared.retain(|_| used.next() == Some(&true));
    }

    pub(super) fn module_variables(&mut self) -> Result<()> {
        let module = self.module;
        for v in &module.variables {
            self.variable(v)?;
        }
        Ok(())
    }

    pub(super) fn variable(&mut self, v: &Variable<'a>) -> Result<()> {
        let place = match v.space {
            Space::Global | Space::Const => self.global_variable(v)?,
            Space::Shared => {
                let bytes = v.elements.map(|_| v.bytes());
                if bytes.is_none() && !v.is_extern {
                    return Err(Error::syntax(v.at, "an array without a size is not `.extern`").found(clip(v.name)));
                }
                self.code.shared.push(SharedVariable { name: v.name.to_owned(), bytes, align: v.align });
                VariablePlace::Shared(self.code.shared.len() as u32 - 1)
            }
            Space::Local | Space::Param => VariablePlace::Local(self.frame(v)?, v.space),
            Space::Generic | Space::SharedCluster => {
                return Err(Error::syntax(v.at, "a variable without a state space").found(clip(v.name)));
            }
        };
        self.bind(v.name, Binding::Variable(place), v.at)
    }

    /// Room in the thread's local memory. Bytes that belong to no variable lie between two: an access that goes on past the end of one
    /// does not reach the next.
    pub(super) fn frame(&mut self, v: &Variable<'a>) -> Result<u64> {
        let (code, bytes, align) = (&mut self.code, v.bytes(), v.align.max(1));
        // An empty variable has a place of its own, too.
        code.declared_local_bytes = code.declared_local_bytes.next_multiple_of(align).saturating_add(bytes.max(1));
        // CUDA C++ Programming Guide, "Compute Capabilities": 512 KB of local memory a thread.
        if code.declared_local_bytes > 512 << 10 {
            return Err(Error::unsupported(v.at, "a thread has too much local memory").required("at most 512 KiB"));
        }
        let gap = code.locals.last().map_or(0, |before| before.bytes.clamp(16, 1024));
        let offset = (code.local_bytes + gap).next_multiple_of(align);
        code.local_bytes = offset + bytes.max(1);
        code.locals.push(LocalVariable { name: v.name.to_owned(), start: offset, bytes });
        self.frames.insert(offset, bytes);
        Ok(offset)
    }

    fn global_variable(&mut self, v: &Variable<'a>) -> Result<VariablePlace> {
        if v.is_extern {
            return Err(Error::unsupported(v.at, "a variable of another module").found(clip(v.name)));
        }
        const MOST: u64 = 1 << 30;
        const MOST_IN_ALL: u64 = 4 << 30;
        let before = self.global_bytes;
        if v.bytes() > MOST || before.saturating_add(v.bytes()) > MOST_IN_ALL {
            return Err(Error::unsupported(v.at, "a variable is too large")
                .found(format!("{} B, behind {before} B of other variables", v.bytes()))
                .required(format!("at most {MOST} B, and {MOST_IN_ALL} B in all")));
        }
        let mut variable = GlobalVariable {
            name: v.name.to_owned(),
            bytes: vec![0; v.bytes() as usize],
            ty: v.ty,
            is_array: v.is_array,
            is_const: v.space == Space::Const,
            align: v.align,
            addresses: Vec::new(),
        };
        self.global_bytes = before + v.bytes();
        self.initialise(v, &mut variable)?;
        self.code.globals.push(variable);
        Ok(VariablePlace::Global(self.code.globals.len() as u32 - 1, v.space))
    }

    pub(super) fn parameters(&mut self, entry: &Function<'a>) -> Result<()> {
        (self.code.params, self.code.param_bytes) = layout(entry)?;
        for i in 0..self.code.params.len() {
            let place = VariablePlace::Param(self.code.params[i].offset);
            self.bind(entry.params[i].name, Binding::Variable(place), entry.params[i].at)?;
        }
        Ok(())
    }
}

/// Where the parameters of an entry lie, and their bytes in all.
pub(in super::super) fn layout(entry: &Function<'_>) -> Result<(Vec<ParamInfo>, u64)> {
    let mut end = 0_u64;
    let mut params = Vec::new();
    for p in &entry.params {
        let offset = end.next_multiple_of(p.align.max(1));
        end = offset.saturating_add(p.bytes());
        // PTX ISA, "Kernel Function Parameters".
        if end > 32764 {
            return Err(Error::unsupported(p.at, "the entry has too many parameters").required("at most 32764 B"));
        }
        params.push(ParamInfo {
            name: p.name.to_owned(),
            ty: p.ty,
            is_array: p.is_array,
            offset,
            bytes: p.bytes(),
            pointee: p.pointee,
        });
    }
    Ok((params, end))
}
