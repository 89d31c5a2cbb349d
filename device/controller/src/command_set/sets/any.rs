//! An NVM Set over one of the kinds of FTL. The command path is compiled for each kind.

use std::rc::Rc;

use nandscape_device_ftl_core::Collections;
use nandscape_device_ftl_ox::OxBlock;
use nandscape_device_ftl_page::PageFtl;
use nandscape_device_media::Media;
use nandscape_sim::Sim;

use super::super::nvm::Nvm;
use super::super::{CommandSet, SetInfo};
use crate::config::ControllerConfig;

/// See the file.
pub enum NvmSet {
    /// Over the page FTL.
    Page(Nvm<PageFtl>),
    /// Over OX-Block, or a rival made of its components.
    OxBlock(Nvm<OxBlock>),
}

/// Does the same with a set whatever its kind.
macro_rules! on {
    ($set:expr, $nvm:ident => $does:expr) => {
        match $set {
            $crate::command_set::sets::NvmSet::Page($nvm) => $does,
            $crate::command_set::sets::NvmSet::OxBlock($nvm) => $does,
        }
    };
}
pub(super) use on;

impl NvmSet {
    /// Over a page FTL, which uses `media`.
    pub fn page(sim: &Sim, media: Rc<Media>, ftl: Rc<PageFtl>, config: &ControllerConfig) -> NvmSet {
        NvmSet::Page(Nvm::new(sim, media, ftl, config))
    }

    /// Over an OX-Block, which uses `media`.
    pub fn ox_block(sim: &Sim, media: Rc<Media>, ftl: Rc<OxBlock>, config: &ControllerConfig) -> NvmSet {
        NvmSet::OxBlock(Nvm::new(sim, media, ftl, config))
    }

    pub(super) fn info(&self) -> SetInfo {
        on!(self, nvm => nvm.info())
    }

    pub(super) fn collections(&self) -> Option<&dyn Collections> {
        on!(self, nvm => nvm.collections(0))
    }

    pub(super) fn offer_no_metadata(&mut self) {
        on!(self, nvm => nvm.offer_no_metadata());
    }
}
