//! The ledger as a whole, over its public interface.
//!
//! | file | what |
//! |---|---|
//! | `entries` | every experiment is complete, and its entry equals that of the shared ledger |
//! | `find` | experiments by their names |
//! | `quick` | every experiment run for a moment: it measures, it judges, its forms are complete |
//! | `score` | the score of the README and of the page is the count of the page's verdicts |
//! | `resume` | complete results are kept; torn, foreign and outdated ones are measured again; threads change nothing |
//! | `shared` | a measurement of several claims is made once |
//! | `vary` | costs at half and at twice: what flips |
//! | `support` | folders and runs for the others |

mod entries;
mod find;
mod quick;
mod resume;
mod score;
mod shared;
mod support;
mod vary;
