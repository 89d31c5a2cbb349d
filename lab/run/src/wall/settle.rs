//! A task of a model at the wall clock, before the model is served: drives outside this process answer meanwhile.
//!
//! Left out: clients, who come later.

use std::rc::Rc;

use nandscape_host_driver::nvme_tcp::NvmeTcp;
use nandscape_sim::{Executor, Span};

use super::pacer::Pacer;
use super::patience::Patience;

/// Runs a task to its end. `name` is whose, for messages; each of `remote` may answer nothing for `longest`.
///
/// # Errors
/// That a drive is lost.
pub(crate) fn settle<T: 'static>(
    executor: &mut Executor,
    (name, longest): (&str, Span),
    remote: &[Rc<NvmeTcp>],
    task: impl Future<Output = T> + 'static,
) -> Result<T, String> {
    let own = std::mem::take(executor);
    let mut pacer = Pacer::over(own, false, Patience::new(name.to_owned(), longest));
    remote.iter().for_each(|drive| pacer.add(drive.clone()));
    let result = pacer.run(task).map_err(|lost| lost.to_string());
    *executor = pacer.into_executor();
    result
}
