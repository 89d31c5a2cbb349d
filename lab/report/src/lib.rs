//! Reports: the results of a run, for people and for programs. A self-contained HTML page per run; the same figures as
//! JSON and as tables; comparisons of runs; the page of the tour.
//!
//! | file | what |
//! |---|---|
//! | `document` | the files of one run |
//! | `page` | pages from templates, with data and code embedded |
//! | `run_page` | the page of one run |
//! | `array` | a run on an array of drives |
//! | `explain` | a report in words |
//! | `compare` | comparisons of runs |
//! | `shape` | whether a report that was read has figures that a run can have |
//! | `sweep` | the table and the page of a sweep |
//! | `demo` | the page of the tour |
//! | `turns` | the page of runs on a storage engine over several drives |
//! | `dashboard` | the page that a server shows of its drives while they work |
//! | `several` | common code of pages with several runs |
//! | `bars` | the breakdown of the mean, as stacked bars and as a table |
//! | `tables`, `csv`, `parquet` | the figures as tables, and their files |
//! | `requests` | the requests of a run, a row for each |
//! | `format` | figures for people |
//!
//! Pages show the figures of `report.json` and recompute none.

mod array;
mod bars;
mod compare;
mod csv;
mod dashboard;
mod demo;
mod document;
mod explain;
pub mod format;
mod page;
#[cfg(feature = "parquet")]
mod parquet;
mod requests;
mod run_page;
mod several;
mod shape;
mod sweep;
mod tables;
mod turns;

pub use array::ArrayDocument;
pub use compare::{Cell, Column, Comparison, Figure, LoadError, PADDED};
pub use dashboard::dashboard_page;
pub use demo::{Tour, TourRun};
pub use document::{Document, WriteError};
pub use explain::{Evidence, Explanation, Kind, Sentence};
pub use page::{PAGE_MARK, STYLE};
pub use requests::{REQUEST_NUMBERS, RequestLog, request_times};
pub use sweep::SweepReport;
pub use turns::{EnginePage, EngineRun};
