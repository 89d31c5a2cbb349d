//! The limit on the bytes of data of one client's commands and replies. The window of a client that receives grows
//! with the received data. A client that does not receive keeps a small window, so that its further commands are not
//! begun.

/// The window of a client that has received nothing yet, or whose replies wait for it.
pub const FIRST_WINDOW: usize = 4 << 20;
/// The window of a client that receives.
pub const MAX_WINDOW: usize = 64 << 20;

/// See the module.
#[derive(Debug)]
pub struct Window(usize);

impl Default for Window {
    fn default() -> Window {
        Window(FIRST_WINDOW)
    }
}

impl Window {
    /// Whether a command of `len` bytes may begin while the client holds `held`. One is always allowed.
    pub fn admits(&self, held: usize, len: usize) -> bool {
        held == 0 || held + len <= self.0
    }

    /// The client's socket has taken `bytes`.
    pub fn took(&mut self, bytes: usize) {
        self.0 = MAX_WINDOW.min(self.0.saturating_add(bytes));
    }

    /// The client's socket takes no more for now, and `bytes` of replies wait for it.
    pub fn waits(&mut self, bytes: usize) {
        if bytes >= FIRST_WINDOW {
            self.0 = FIRST_WINDOW;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_with_what_is_received_and_closes_when_replies_wait() {
        let mut window = Window::default();
        assert!(window.admits(0, MAX_WINDOW), "a command alone");
        assert!(window.admits(FIRST_WINDOW - 1, 1) && !window.admits(FIRST_WINDOW, 1));
        (0..1_000).for_each(|_| window.took(1 << 20));
        assert!(window.admits(MAX_WINDOW - 1, 1) && !window.admits(MAX_WINDOW, 1));
        window.waits(FIRST_WINDOW - 1);
        assert!(window.admits(MAX_WINDOW - 1, 1), "few replies are on their way");
        window.waits(FIRST_WINDOW);
        assert!(!window.admits(FIRST_WINDOW, 1) && window.admits(FIRST_WINDOW - 1, 1));
    }
}
