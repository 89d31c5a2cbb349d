//! A browser without a screen that is driven while a page works: the DevTools protocol over a pair of pipes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

/// The longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    /// Ends the thread that reads, once the browser has gone.
    end: File,
    session: Value,
    asked: u64,
    _folder: tempfile::TempDir,
}

/// The screen of a browser.
#[derive(Copy, Clone)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) dark: bool,
}

impl Browser {
    pub(crate) fn start() -> Browser {
        let folder = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = folder.path().join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            // Open both ways, so that opening does not block.
            OpenOptions::new().read(true).write(true).open(&path).unwrap()
        };
        let (to, end) = (pipe("to"), pipe("from"));
        let profile = folder.path().join("profile");
        let script = format!(
            "exec chromium --headless=new --no-sandbox --disable-gpu --remote-debugging-pipe --user-data-dir='{}' 3<to 4>from",
            profile.display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let (tell, from) = channel();
        let answers = BufReader::new(end.try_clone().unwrap());
        std::thread::spawn(move || {
            for message in answers.split(0) {
                let message: Value = serde_json::from_slice(&message.unwrap()).unwrap();
                if message.is_null() || tell.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser { child, to, from, end, session: Value::Null, asked: 0, _folder: folder };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attached)["sessionId"].clone();
        browser
    }

    /// Calls a method of the protocol.
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": params });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self
                .from
                .recv_timeout(ANSWER)
                .unwrap_or_else(|error| panic!("chromium does not answer {method} ({error}); run: cargo xtask tools"));
            if answer["id"] == self.asked {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// Opens a page.
    pub(crate) fn open(&mut self, url: &str, screen: Screen) {
        let metrics = json!({ "width": screen.width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if screen.dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", media);
        // A distinct query distinguishes the new page from the one before.
        let query = format!("?{}-{scheme}", screen.width);
        self.call("Page.navigate", json!({ "url": format!("{url}{query}") }));
        self.until(&format!("location.search === '{query}' && document.documentElement"));
    }

    /// The value of an expression on the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&mut self, expression: &str) {
        crate::patience::until(expression, || self.value(&format!("!!({expression})")) == true);
    }

    /// Presses a key and lets it go.
    pub(crate) fn press(&mut self, key: &str, code: u32) {
        for kind in ["rawKeyDown", "char", "keyUp"] {
            let text = if kind == "char" && key == "Enter" { "\r" } else { "" };
            if kind != "char" || !text.is_empty() {
                let event =
                    json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
                self.call("Input.dispatchKeyEvent", event);
            }
        }
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// The whole page as a PNG file.
    pub(crate) fn picture(&mut self, path: &Path) {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        std::fs::write(path, of_base64(answer["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.end.write_all(b"null\0");
    }
}

/// RFC 4648, 4.
fn of_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = text.trim_end_matches('=').as_bytes();
    let group = |group: &[u8]| {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 6 | u32::from(digit(*byte))) << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    text.chunks(4).flat_map(group).collect()
}

#[test]
fn base64_is_read() {
    assert_eq!(
        [of_base64("Zm9vYmFy"), of_base64("Zm9vYg=="), of_base64("/+8=")],
        [b"foobar".to_vec(), b"foob".to_vec(), vec![0xff, 0xef]]
    );
}
