//! TeaFA (Li 2020, 3.2, 3.6 and 6.2): arrays whose drives collect garbage in turns.
//!
//! | file | what |
//! |---|---|
//! | `teafa_*` | an experiment each |
//! | `rig` | what these experiments share |

pub(crate) mod rig;
pub(crate) mod teafa_2d_window;
pub(crate) mod teafa_all;
pub(crate) mod teafa_dynamic_window;
pub(crate) mod teafa_extra_load;
pub(crate) mod teafa_filebench;
pub(crate) mod teafa_ocssd;
pub(crate) mod teafa_tpcc;
pub(crate) mod teafa_vs;
pub(crate) mod teafa_waf;
pub(crate) mod teafa_window_formulas;
