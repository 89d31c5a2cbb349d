//! `--over` of stores: layers of a host between a store and its drives, in simulated time.

use clap::Args;
use nandscape_lab_run::chain::{Chain, LayerWords, Named};

use crate::failure::Failure;

/// The layers, and changes of their settings.
#[derive(Args)]
pub(crate) struct StoreLayers {
    /// Put a layer of a host below the store, over drives of the profile: [NAME=]KIND[:N][,KEY=VALUE]...; may be repeated, from the
    /// bottom up, as in `nandscape sim`. --set NAME.KEY=VALUE changes a layer, too
    #[arg(long, value_name = "LAYER")]
    over: Vec<LayerWords>,
}

impl StoreLayers {
    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.over.is_empty()
    }

    /// The layers with their settings, and the changes that are not theirs.
    ///
    /// # Errors
    /// Which layer or setting is not valid, and what would be.
    pub(crate) fn resolve(&self, set: &[String]) -> Result<(Vec<Named>, Vec<String>), Failure> {
        let mut chain = Chain { layers: self.over.clone() };
        let resolved = chain.take(set).and_then(|others| Ok((chain.resolve()?, others)));
        resolved.map_err(|problem| Failure::Input(anyhow::anyhow!("--over: {problem}")))
    }

    /// Rejects a form of a store that lies in the drive itself.
    ///
    /// # Errors
    /// With layers, for such a form.
    pub(crate) fn check(&self, is_of_blocks: bool, valid: &str) -> Result<(), Failure> {
        match self.is_empty() || is_of_blocks {
            true => Ok(()),
            false => Err(Failure::Input(anyhow::anyhow!(
                "--over: layers pass blocks, and the other forms need a drive's own units; --form {valid} is valid"
            ))),
        }
    }
}
