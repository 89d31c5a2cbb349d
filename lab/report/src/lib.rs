//! Reports: what a run found, for people and for other programs. One HTML page a run, which holds everything it shows;
//! the same figures as JSON and as tables; runs side by side; the page of the tour.
//!
//! | file | what |
//! |---|---|
//! | `document` | the files of one run |
//! | `page` | pages from templates, with the data and the code they need inside |
//! | `run_page` | the page of one run |
//! | `bars` | where the mean goes, as stacked bars and as a table |
//! | `tables`, `csv`, `parquet` | the figures as tables, and those as files |
//! | `format` | figures for people |
//!
//! Nothing here computes a figure that a report has: pages show what is in `report.json`.

mod bars;
mod csv;
mod document;
pub mod format;
mod page;
#[cfg(feature = "parquet")]
mod parquet;
mod run_page;
mod tables;

pub use document::Document;
