//! Notices ahead of completions in words.

use nandscape_lab_report::format::{count, percent, us, us_or_dash};
use nandscape_lab_run::{BufferReport, ComponentReport, PrecompletionReport};

/// A report of notices, if there is one.
pub(crate) fn render(report: Option<&PrecompletionReport>) -> String {
    let Some(report) = report else { return String::new() };
    let of = |reads: u64| format!("{} ({})", count(reads), percent(report.share(reads)));
    let mut text = format!(
        "notices {} us ahead: in time {}, early {}, late {}, missing {}\n",
        us(report.window_us),
        of(report.in_time),
        of(report.early),
        of(report.late),
        of(report.missing)
    );
    if report.large + report.unissued > 0 {
        text.push_str(&format!(
            "  not predicted: {} reads of 8 KiB and more, {} without a read of one page\n",
            count(report.large),
            count(report.unissued)
        ));
    }
    text.push_str(&format!(
        "  error of the prediction: mean {} us, p99 {}, max {}; {}; {}\n",
        us_or_dash(report.error_mean_us),
        us_or_dash(report.error_p99_us),
        us_or_dash(report.error_max_us),
        component("flash", &report.flash),
        component("transfer to the host", &report.transfer)
    ));
    text + &buffer(report.buffer)
}

fn component(name: &str, of: &ComponentReport) -> String {
    let [mean, deviation, error] = [of.mean_us, of.deviation_us, of.error_us].map(us_or_dash);
    format!("{name} {mean} us (deviation {deviation}, error {error})")
}

/// What the host expected of the write buffer; empty without writes.
fn buffer(buffer: BufferReport) -> String {
    let BufferReport { hits, missed, unexpected_hits, waits } = buffer;
    if hits + missed + unexpected_hits + waits == 0 {
        return String::new();
    }
    format!(
        "  writes expected to find room: {}, of which {} waited; expected to wait: {}, of which {} found room\n",
        count(hits + missed),
        count(missed),
        count(unexpected_hits + waits),
        count(unexpected_hits)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_shares_of_the_reads_of_a_page() {
        let component = ComponentReport { mean_us: Some(40.0), deviation_us: Some(1.0), error_us: None };
        let report = PrecompletionReport {
            window_us: 16.0,
            reads: 12,
            large: 1,
            unissued: 1,
            in_time: 7,
            early: 1,
            late: 1,
            missing: 1,
            error_mean_us: Some(0.5),
            error_p99_us: None,
            error_max_us: Some(3.0),
            flash: component.clone(),
            transfer: component,
            buffer: BufferReport { hits: 5, missed: 1, unexpected_hits: 2, waits: 4 },
        };
        let text = render(Some(&report));
        assert!(text.starts_with("notices 16.00 us ahead: in time 7 (70.0%), early 1 (10.0%)"), "{text}");
        assert!(text.contains("1 reads of 8 KiB and more, 1 without"), "{text}");
        assert!(text.contains("find room: 6, of which 1 waited; expected to wait: 6, of which 2 found room"), "{text}");
        assert_eq!(render(None), "");
    }
}
