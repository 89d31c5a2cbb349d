//! Reports: what a run found, for people and for other programs. One HTML page a run, which holds everything it shows;
//! the same figures as JSON and as tables; runs side by side; the page of the tour.
//!
//! | file | what |
//! |---|---|
//! | `document` | the files of one run |
//! | `page` | pages from templates, with the data and the code they need inside |
//! | `run_page` | the page of one run |
//! | `compare` | runs side by side |
//! | `demo` | the page of the tour |
//! | `several` | what pages with several runs share |
//! | `bars` | where the mean goes, as stacked bars and as a table |
//! | `tables`, `csv`, `parquet` | the figures as tables, and those as files |
//! | `format` | figures for people |
//!
//! Nothing here computes a figure that a report has: pages show what is in `report.json`.

mod bars;
mod compare;
mod csv;
mod demo;
mod document;
pub mod format;
mod page;
#[cfg(feature = "parquet")]
mod parquet;
mod run_page;
mod several;
mod tables;

pub use compare::{Cell, Column, Comparison, Figure, LoadError};
pub use demo::{Tour, TourRun};
pub use document::{Document, WriteError};
pub use page::PAGE_MARK;
