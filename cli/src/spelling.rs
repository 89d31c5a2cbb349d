//! Options as fio spells them: `--ramp_time` is `--ramp-time`.

use std::ffi::OsString;

/// A command line with hyphens in the names of its long options. Values, and words after `--`, stay as they are.
pub(crate) fn with_hyphens(words: Vec<OsString>) -> Vec<OsString> {
    let mut options = true;
    let spelt = |word: OsString| {
        options &= word != "--";
        let Some(name) = word.to_str().and_then(|word| word.strip_prefix("--")).filter(|_| options) else {
            return word;
        };
        let (name, value) = name.split_at(name.find('=').unwrap_or(name.len()));
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if is_name { format!("--{}{value}", name.replace('_', "-")).into() } else { word }
    };
    words.into_iter().map(spelt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_options_change() {
        let words =
            ["nandscape", "sim", "--ramp_time=1s", "--io_count", "9", "--set", "a_b=c_d", "--x_y=a_b", "--", "--a_b"];
        let spelt = with_hyphens(words.iter().map(OsString::from).collect());
        let due =
            ["nandscape", "sim", "--ramp-time=1s", "--io-count", "9", "--set", "a_b=c_d", "--x-y=a_b", "--", "--a_b"];
        assert_eq!(spelt, due);
    }
}
