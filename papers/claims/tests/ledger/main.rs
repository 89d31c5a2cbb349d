//! The ledger as a whole, over its public interface.
//!
//! | file | what |
//! |---|---|
//! | `entries` | every experiment is whole, and its entry is that of the shared ledger |
//! | `find` | experiments by their names |
//! | `quick` | every experiment run for a moment: it measures, it judges, its forms are whole |
//! | `score` | the score of the README and of the page is the count of the page's verdicts |
//! | `resume` | what is there is kept, what is torn, foreign or of other inputs is measured again; threads change nothing |
//! | `support` | folders and runs for the others |

mod entries;
mod find;
mod quick;
mod resume;
mod score;
mod support;
