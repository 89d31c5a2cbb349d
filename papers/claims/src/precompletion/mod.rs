//! Precompletion (Shin 2017, chapter 4): notices ahead of completions.
//!
//! | file | what |
//! |---|---|
//! | `pre_*` | an experiment each |
//! | `rig` | what these experiments share |

pub(crate) mod pre_buffer_hit;
pub(crate) mod pre_multidepth;
pub(crate) mod pre_prediction;
pub(crate) mod pre_window;
pub(crate) mod rig;
