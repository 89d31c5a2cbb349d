//! Drives of several FTLs: each namespace has its own FTL, the whole drive acts as one, and channels keep their owners.

mod administration;
mod files;
mod power;
mod profile;
mod rig;
mod serving;
mod tenants;
