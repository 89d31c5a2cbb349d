//! A planned run, checked against a drive.

use nandscape_host_open_channel::Geometry;

use crate::engine::Engine;
use crate::layout::{Node, spread};
use crate::mix::Mix;

/// See the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Channels, from the first on.
    pub channels: u32,
    /// Parallel units of each channel, from the first on.
    pub pus: u32,
    /// Threads.
    pub threads: u32,
    /// Blocks of each unit.
    pub blocks: u32,
    /// Where the search for them begins.
    pub first_block: u32,
    /// Pages of each block.
    pub pages: u32,
    /// Pages of a command.
    pub vector: u32,
    /// Reads and writes.
    pub mix: Mix,
}

/// The fault of a plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadPlan(pub String);

/// Most addresses of a command.
const MOST_ADDRESSES: u32 = nandscape_wire_nvme::open_channel::MAX_VECTOR;

/// Pages of a block: minimum writes of a chunk.
pub fn pages_of(geometry: &Geometry) -> u32 {
    geometry.sectors / geometry.ws_min
}

/// Pages that fit into a command; 0 where not even one does.
pub(crate) fn most_vector(geometry: &Geometry) -> u32 {
    MOST_ADDRESSES / geometry.ws_min
}

impl Plan {
    /// The nodes.
    ///
    /// # Errors
    /// What does not fit the drive or the engine.
    pub fn nodes(&self, geometry: &Geometry, engine: &dyn Engine) -> Result<Vec<Node>, BadPlan> {
        if most_vector(geometry) == 0 {
            return Err(BadPlan(format!(
                "a page of this drive has {} addresses, and a command {MOST_ADDRESSES}: it is written by no vector; a drive with a minimum \
                 write of {MOST_ADDRESSES} blocks or fewer is valid",
                geometry.ws_min
            )));
        }
        if self.first_block >= geometry.chunks {
            let (first, last) = (self.first_block, geometry.chunks - 1);
            return Err(BadPlan(format!(
                "first block {first}: a parallel unit has blocks 0 to {last}; give one of them"
            )));
        }
        let chunks = geometry.chunks - self.first_block;
        for (what, given, most) in [
            ("channels", self.channels, geometry.groups),
            ("parallel units of a channel", self.pus, geometry.pus),
            ("blocks", self.blocks, chunks),
            ("pages of a block", self.pages, pages_of(geometry)),
            ("pages of a command", self.vector, most_vector(geometry)),
            ("threads", self.threads, self.channels.saturating_mul(self.pus)),
        ] {
            let why = match what {
                "threads" => "parallel units; no unit has two threads".to_owned(),
                "blocks" => format!("of them from block {} on", self.first_block),
                "pages of a command" => "of them: a command has 64 addresses".to_owned(),
                _ => "of them in this drive".to_owned(),
            };
            if given == 0 || given > most {
                return Err(BadPlan(format!("{given} {what}: there are {most} {why}; give 1 to {most}")));
            }
        }
        let units = spread(self.channels, self.pus, self.threads);
        let node = |(units, number)| Node {
            number,
            of: self.threads,
            units,
            blocks: self.blocks,
            pages: self.pages,
            vector: self.vector,
            mix: self.mix.clone(),
        };
        let nodes: Vec<Node> = units.into_iter().zip(0..).map(node).collect();
        engine.check(&nodes).map_err(BadPlan)?;
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use nandscape_wire_nvme::open_channel as oc;

    use super::*;
    use crate::engine::Engines;

    #[test]
    fn a_page_that_no_vector_names_is_refused() {
        let told = |ws_min: u32| {
            let mut data = oc::Geometry::zeroed();
            data.mjr = 2;
            data.lbaf = oc::AddressBits { group: 0, pu: 0, chunk: 2, sector: 10, reserved: [0; 4] };
            (data.num_grp, data.num_pu, data.num_chk) = (1.into(), 1.into(), 4.into());
            (data.clba, data.ws_min, data.ws_opt) = (960.into(), ws_min.into(), ws_min.into());
            let geometry = Geometry::of(&data).expect("it makes sense");
            let plan = Plan {
                channels: 1,
                pus: 1,
                threads: 1,
                blocks: 1,
                first_block: 0,
                pages: 4,
                vector: 1,
                mix: "W".parse().expect("a mix"),
            };
            let engine = Engines::built_in().find("sequential").expect("an engine");
            plan.nodes(&geometry, &*engine).map(|nodes| nodes.len()).map_err(|error| error.to_string())
        };
        assert_eq!(told(64), Ok(1));
        let refused = told(96).expect_err("no command names 96 addresses");
        assert!(refused.starts_with("a page of this drive has 96 addresses, and a command 64"), "{refused}");
    }
}
