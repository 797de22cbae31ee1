//! The proofs of roles: warps and clusters do what the copies and MMAs ask for, and have the registers.

use super::cover::{Flaws, Law};
use super::{Engine, Factor, Place, Role, Task, Tiling};
use crate::atom::Operand;

impl Tiling {
    pub(super) fn role_flaws(&self, flaws: &mut Flaws) {
        for mma in &self.mmas {
            let threads = mma.tiled().map_or(0, |mma| mma.threads());
            let (consumers, teams) = (i64::from(self.threads_of(Task::Consume)), i64::from(self.teams()));
            if threads * teams != consumers {
                let by_turns = if teams > 1 { format!(" tiles in {teams} teams") } else { String::new() };
                flaws.push(
                    Law::Roles,
                    format!("{consumers} threads that compute{by_turns}"),
                    format!("{}: those of the MMA{}", threads * teams, if teams > 1 { " in each team" } else { "" }),
                    "an MMA is computed by all of its threads, and by no others",
                );
            }
        }
        for copy in &self.copies {
            let (Place::Global(_), Place::Shared(tensor)) = (copy.from, copy.to) else { continue };
            // Threads copy for their own CTA.
            let Engine::Tma { sharers: shares, .. } = copy.engine else { continue };
            // A's rows are the same for all CTAs along N, B's for all along M.
            let reads =
                |operand| self.mmas.iter().any(|mma| mma.factors().contains(&(operand, Factor::Shared(tensor))));
            let peers = match (reads(Operand::A), reads(Operand::B)) {
                (true, false) => self.cluster[1],
                (false, true) => self.cluster[0],
                _ => 1,
            };
            if shares != peers {
                let found = format!("{}: a box from each of {shares} CTAs, cluster of {:?}", copy.what, self.cluster);
                let required = format!("{peers} CTAs");
                flaws.push(
                    Law::Roles,
                    found,
                    required,
                    "CTAs of a cluster in one row of D share A, those in one column B",
                );
            }
        }
        self.register_flaws(flaws);
        let own = self.roles.iter().filter(|role| role.task == Task::Consume).find_map(|role| role.registers);
        let accumulators = self.accumulators();
        if let Some(own) = own.filter(|own| u64::from(*own) < accumulators) {
            let found = format!("{accumulators} accumulators of a thread that has {own} registers");
            flaws.push(Law::Registers, found, "a register for each", "the compiler would spill them in the k loop");
        }
    }

    /// Registers that warpgroups share out are those that the CTA was launched with, or `setmaxnreg` waits for ever.
    fn register_flaws(&self, flaws: &mut Flaws) {
        let asked: u32 = self.roles.iter().filter_map(|role| role.registers.map(|r| r * role.threads)).sum();
        if asked == 0 {
            return;
        }
        let given = self.launched_registers() * self.threads();
        let whole = |role: &Role| {
            role.threads.is_multiple_of(128) && role.registers.is_some_and(|r| r % 8 == 0 && (24..=256).contains(&r))
        };
        if asked > given || !self.roles.iter().all(whole) {
            let each: Vec<String> = self.roles.iter().map(|r| format!("{} x {:?}", r.threads, r.registers)).collect();
            flaws.push(
                Law::Roles,
                format!("registers of {}", each.join(", ")),
                format!("whole warpgroups, multiples of 8 from 24 to 256, {given} together"),
                "setmaxnreg waits until registers are free (PTX ISA, \"setmaxnreg\")",
            );
        }
    }
}
