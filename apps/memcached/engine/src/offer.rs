//! What a policy needs of a drive, beyond reads and writes.

use nandscape_host_control::{Control, Error, Placement, PredictableLatency};
use nandscape_sim::Sim;

use crate::drives::Given;
use crate::policy::{Need, Windows};
use crate::zones::Zoned;

/// What the policy needs of a drive.
pub(crate) enum Offer {
    Nothing,
    Orders(Control),
    Windows(Windows),
    Placement(Placement),
    Zones(Box<Zoned>),
}

impl Offer {
    pub(crate) async fn open(sim: &Sim, given: &Given, need: Need) -> Result<Offer, Error> {
        let admin = given.admin.clone();
        Ok(match need {
            Need::Nothing => Offer::Nothing,
            Need::Orders => {
                let admin = admin.ok_or(Error::Unsupported)?;
                Offer::Orders(Control::open(sim, admin, given.io.info().nsid).await?)
            }
            Need::Windows => {
                let mode = PredictableLatency::open(sim, admin.ok_or(Error::NoWindows)?).await?;
                Offer::Windows(Windows::new(mode))
            }
            Need::Placement(handles) => {
                let admin = admin.ok_or(Error::NoPlacement(handles))?;
                Offer::Placement(Placement::open(sim, (given.io.clone(), admin), handles).await?)
            }
            Need::Zones => {
                let admin = admin.ok_or(Error::NoZones)?;
                Offer::Zones(Box::new(Zoned::open(sim, (given.io.clone(), admin)).await?))
            }
        })
    }
}
