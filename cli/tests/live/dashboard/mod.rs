//! The dashboard in a browser, with load on the drives: drawn at each width, light and dark; used by keyboard; read by those
//! who do not see it. With NANDSCAPE_PICTURES=FOLDER the pages are kept there as pictures.

mod browser;

use std::path::PathBuf;

use serde_json::json;

use crate::server::Server;
use crate::tools::start_fio;
use browser::{Browser, Screen};

/// A server with a dashboard under load, which ends with it.
struct Shown {
    server: Server,
    fio: std::process::Child,
    url: String,
}

impl Shown {
    fn start(more: &[&str]) -> Shown {
        let words = ["--dashboard", "127.0.0.1:0"];
        let server = Server::small(&[&words, more].concat());
        let url = server.dashboard();
        server.next_place("serving small at ");
        let load =
            ["--rw=randrw", "--rwmixread=70", "--bs=4k", "--iodepth=8", "--size=60M", "--time_based", "--runtime=300"];
        let fio = start_fio(&server, &load);
        Shown { server, fio, url }
    }

    fn end(mut self) {
        self.fio.kill().unwrap();
        self.fio.wait().unwrap();
        let ended = self.server.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

/// Waits until everything on the page is loaded.
fn wait_for_all(browser: &mut Browser) {
    browser.until("document.documentElement?.dataset.ready === 'yes'");
    for id in ["reads-us", "writes-us", "iops", "bytes", "strip", "scope", "wear", "gc-bytes", "free", "lag", "gap"] {
        browser.until(&format!("document.getElementById('{id}').dataset.points > 0"));
    }
    browser.until("document.querySelectorAll('#went .bar').length === 2");
    assert_eq!(browser.value("document.documentElement.dataset.error ?? null"), json!(null));
}

#[test]
fn the_page_shows_the_drives_at_work_on_every_screen() {
    let shown = Shown::start(&[]);
    let mut browser = Browser::start();
    for (width, dark) in [(1400, false), (1400, true), (500, false), (500, true)] {
        browser.open(&shown.url, Screen { width, dark });
        wait_for_all(&mut browser);
        // Nothing is cut off, and nothing has to be moved sideways but tables.
        assert_eq!(browser.value("document.documentElement.scrollWidth > innerWidth"), false, "at {width}");
        let cut = "[...document.querySelectorAll('figure, h2, p, dl')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1).length";
        assert_eq!(browser.value(cut), 0, "at {width}");
        // Each figure is a picture and a table, too.
        for id in ["reads-us", "strip", "scope", "wear"] {
            let forms = format!("document.getElementById('{id}').forms");
            assert_eq!(browser.value(&format!("{forms}.svg().startsWith('<svg ')")), true, "{id}");
            assert_eq!(browser.value(&format!("{forms}.csv().split('\\n').length > 3")), true, "{id}");
        }
        assert!(browser.value("document.querySelector('#latency-table tbody td').textContent") != json!("0"));
        assert_eq!(browser.value("document.getElementById('read-only').hidden"), false);
        if let Some(folder) = std::env::var_os("NANDSCAPE_PICTURES") {
            browser.until("document.getElementById('times').textContent.match(/drive time ([0-9]+)/)[1] >= 12");
            let name = format!("{width}-{}.png", if dark { "dark" } else { "light" });
            browser.picture(&PathBuf::from(folder).join(name));
        }
    }
    drop(browser);
    shown.end();
}

#[test]
fn it_is_used_by_keyboard_and_read_aloud() {
    let shown = Shown::start(&["--dashboard-control"]);
    let mut browser = Browser::start();
    browser.open(&shown.url, Screen { width: 1400, dark: false });
    wait_for_all(&mut browser);
    let unnamed = "[...document.querySelectorAll('button, select, input, canvas, [role=region], [role=img], dialog')].filter((one) => !one.parentElement.closest('[role=img]') && !(one.ariaLabel || one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') || one.textContent.trim() || one.labels?.length)).length";
    assert_eq!(browser.value(unnamed), 0);
    assert_eq!(
        browser.value(
            "[...document.querySelectorAll('table')].filter((one) => !one.caption && !one.closest('[role=img]')).length"
        ),
        0
    );
    // From the top: the drive, Pause, Tell me now.
    let focused = "document.activeElement.id";
    for id in ["drive", "pause", "tell"] {
        browser.press("Tab", 9);
        assert_eq!(browser.value(focused), id);
    }
    browser.press("Enter", 13);
    browser.until("document.getElementById('told').textContent.startsWith('Drive small at ')");
    // A rule is typed, confirmed, and sent; the default of Enter is No.
    browser.value("document.getElementById('rule').focus()");
    browser.type_text("slow read by=2ms");
    browser.press("Enter", 13);
    browser.until("document.getElementById('sure').open");
    assert_eq!(browser.value("document.activeElement.textContent"), "No");
    browser.press("Enter", 13);
    browser.until("!document.getElementById('sure').open");
    assert_eq!(browser.value("document.getElementById('reply').textContent"), "");
    browser.value("document.getElementById('rule').focus()");
    browser.press("Enter", 13);
    browser.until("document.getElementById('sure').open");
    browser.value("document.querySelector('#sure button[value=yes]').focus()");
    browser.press("Enter", 13);
    browser.until("document.getElementById('reply').textContent.includes('slow read by=2ms')");
    browser.until("parseInt(document.querySelector('#faults-table tbody td')?.textContent) > 0");
    // An invalid rule is rejected in the words of the control socket.
    browser.value("document.getElementById('rule').focus()");
    browser.type_text("melt");
    browser.press("Enter", 13);
    browser.until("document.getElementById('sure').open");
    browser.value("document.querySelector('#sure button[value=yes]').click()");
    browser.until("document.getElementById('reply').textContent.startsWith('Refused: ')");
    drop(browser);
    shown.end();
}
