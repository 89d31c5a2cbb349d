//! LeapIO (Li 2020, chapter 4): drives for guests.
//!
//! | file | what |
//! |---|---|
//! | `leapio_*` | an experiment each |

pub(crate) mod leapio_virt;
