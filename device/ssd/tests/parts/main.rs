//! Drives of several FTLs: each namespace is served by its own, the whole drive acts as one, and channels keep their owners.

mod administration;
mod files;
mod power;
mod profile;
mod rig;
mod serving;
mod tenants;
