//! The micro load of Shin 5.4.2 on blocks at fixed places: readers of small pieces and writers of whole blocks, of the same blocks.
//!
//! Each drive is full of blocks. A pass writes them in order, as the thesis does after a secure erase; each further pass writes as many, at
//! random. Reads skip blocks that wait in memory. The drives keep no data: what matters is when they answer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use nandscape_apps_memcached_engine::policy::policy;
use nandscape_apps_memcached_engine::{Blocks, BlocksConfig, BlocksError};
use nandscape_apps_store::Host;
use nandscape_device_ssd::Ssd;
use nandscape_lab_run::Members;
use nandscape_sim::{Histogram, Rng, Seed, Sim, Span};
use nandscape_wire_nvme::vendor::Attributes;

use crate::below::Left;
use crate::measured::{Begun, Measured};
use crate::simulated::{Outcome, RunError, Spec};

struct Run {
    blocks: Rc<Blocks>,
    /// What writers put.
    bytes: Rc<[u8]>,
    piece: u64,
    put_bytes: Cell<u64>,
    left: Cell<u64>,
    reads: RefCell<Histogram>,
    tenants: RefCell<Vec<Histogram>>,
    problem: RefCell<Option<BlocksError>>,
}

/// Runs it.
pub(crate) async fn run_on(spec: &Spec, sim: &Sim, ssds: &[Rc<Ssd>]) -> Result<Outcome, RunError> {
    let load = spec.load;
    let members = spec.members_on(sim, ssds).await?;
    let given = spec.given(&members)?;
    let policy = policy(spec.policy).ok_or_else(|| RunError::Spec(format!("no policy {}", spec.policy)))?;
    let host = Host::new(sim, spec.machine.cpu(sim), spec.machine.costs);
    let config = BlocksConfig { block: load.write_bytes, dirty: spec.dirty };
    let blocks = Blocks::open(&host, given, policy, config).await?;
    if !load.write_bytes.is_multiple_of(load.read_bytes) {
        let (block, piece) = (load.write_bytes, load.read_bytes);
        return Err(RunError::Spec(format!("reads of {piece} bytes: a divisor of a block, {block} bytes, is valid")));
    }
    let run = Rc::new(Run {
        blocks,
        bytes: vec![1; load.write_bytes as usize].into(),
        piece: load.read_bytes,
        put_bytes: Cell::new(0),
        left: Cell::new(load.reads),
        reads: RefCell::default(),
        tenants: RefCell::new(vec![Histogram::new(); spec.tenants.len()]),
        problem: RefCell::default(),
    });
    run.prepare(spec).await?;
    run.measure(spec, sim, (ssds, &members)).await
}

impl Run {
    async fn prepare(&self, spec: &Spec) -> Result<(), RunError> {
        let (count, mut rng) = (self.blocks.count(), Seed::new(spec.seed).child("pass").rng());
        for round in 0..spec.passes * count {
            let block = if round < count { round } else { rng.below(count) };
            self.blocks.write(block, self.bytes.clone()).await?;
        }
        Ok(())
    }

    async fn measure(
        self: &Rc<Self>,
        spec: &Spec,
        sim: &Sim,
        (ssds, members): (&[Rc<Ssd>], &Members),
    ) -> Result<Outcome, RunError> {
        let begun = Begun::new(spec, sim, (ssds, members), (self.blocks.stats(), self.blocks.host().spent()));
        let seed = Seed::new(spec.seed);
        for writer in 0..spec.load.writers {
            sim.spawn(self.clone().write(seed.child("writer").nth(writer).rng()));
        }
        for (reader, (tenant, attributes)) in spec.readers().into_iter().enumerate() {
            let rng = seed.child("reader").nth(reader as u64).rng();
            sim.spawn(self.clone().read(rng, sim.clone(), tenant, attributes));
        }
        while self.left.get() > 0 && self.problem.borrow().is_none() {
            sim.sleep(Span::from_ms(1)).await;
        }
        if let Some(problem) = self.problem.take() {
            return Err(problem.into());
        }
        self.blocks.trace_open();
        Ok(begun.end(Measured {
            reads: self.reads.borrow().clone(),
            misses: Histogram::new(),
            tenants: self.tenants.borrow().clone(),
            put_bytes: self.put_bytes.get(),
            items: self.blocks.count() * (spec.load.write_bytes / self.piece),
            stats: self.blocks.stats(),
            spent: self.blocks.host().spent(),
            left: Left { below: members.report(), events: Vec::new() },
        }))
    }

    async fn write(self: Rc<Self>, mut rng: Rng) {
        while self.left.get() > 0 {
            let block = rng.below(self.blocks.count());
            if let Err(problem) = self.blocks.write(block, self.bytes.clone()).await {
                self.problem.borrow_mut().get_or_insert(problem);
                return;
            }
            self.put_bytes.set(self.put_bytes.get() + self.bytes.len() as u64);
        }
    }

    async fn read(self: Rc<Self>, mut rng: Rng, sim: Sim, tenant: usize, attributes: Attributes) {
        let pieces = self.bytes.len() as u64 / self.piece;
        while self.left.get() > 0 {
            let (block, first) = (rng.below(self.blocks.count()), rng.below(pieces) * self.piece);
            if self.blocks.is_in_memory(block) {
                // Skip blocks in memory: they need no drive. Sleep, so that other tasks run.
                sim.sleep(Span::from_us(1)).await;
                continue;
            }
            let begun = sim.now();
            let is_of_drive = match self.blocks.read(block, (first, first + self.piece), attributes).await {
                Ok((_, is_of_drive)) => is_of_drive,
                Err(problem) => {
                    self.problem.borrow_mut().get_or_insert(problem);
                    return;
                }
            };
            if is_of_drive && self.left.get() > 0 {
                self.left.set(self.left.get() - 1);
                self.reads.borrow_mut().record(sim.now() - begun);
                self.tenants.borrow_mut().get_mut(tenant).into_iter().for_each(|reads| reads.record(sim.now() - begun));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use nandscape_apps_memcached_engine::policy::POLICIES;

    use crate::clients::tests::spec;
    use crate::{Load, Spec, run};

    fn in_place(policy: &'static str) -> Spec {
        let load = Load {
            readers: 4,
            read_bytes: 4_096,
            writers: 2,
            write_bytes: 64 << 10,
            reads: 2_000,
            ..spec(policy).load
        };
        Spec { in_place: true, passes: 2, dirty: 512 << 10, load, ..spec(policy) }
    }

    #[test]
    fn policies_are_compared_on_full_drives_and_repeat() {
        for policy in ["mixed", "raid0", "epochs", "gc_control"] {
            let ran = || run(&in_place(policy)).unwrap();
            let (one, again) = (ran(), ran());
            assert_eq!(one.reads.count(), 2_000);
            assert_eq!((one.reads.max(), one.took, one.put_bytes), (again.reads.max(), again.took, again.put_bytes));
            assert_eq!(one.after.reads_at_tokens, 0);
            assert!(one.put_bytes > 0 && one.collected > 0, "{policy}: {} blocks", one.collected);
            assert!(one.waf.is_some_and(|waf| waf > 1.0), "{policy}: blocks in place leave valid data to move");
        }
    }

    #[test]
    fn policies_that_choose_places_are_rejected() {
        for policy in POLICIES.into_iter().filter(|policy| ["fdp", "zoned"].contains(policy)) {
            let error = run(&in_place(policy)).err().expect("it cannot").to_string();
            assert!(error.contains("fixed places"), "{error}");
        }
    }
}
