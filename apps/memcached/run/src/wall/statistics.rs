//! What a server counts: names and values of `stats`.

/// Names and values; none of a server without the command.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Statistics(pub(super) Vec<(String, String)>);

impl Statistics {
    /// The value of a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a name, if it is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok().filter(|number: &f64| number.is_finite())
    }
}
