//! The built-in profiles.

/// A built-in profile.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        /// All of them.
        pub const BUILTIN: &[Builtin] = &[
            $(Builtin { name: $name, text: include_str!(concat!("../profiles/", $name, ".toml")) },)*
        ];
    };
}

builtin![
    "default",
    "qlc",
    "femu-blackbox",
    "femu-ocssd",
    "femu-teafa",
    "ttflash-256g",
    "ttflash",
    "mqsim-mlc",
    "samsung-970pro",
    "840-pro",
    "sm843t",
    "wd-zn540",
    "wd-zn540-block",
    "ox-block",
    "two-ftls",
    "lsm",
    "dfc-mlc",
    "cnex-westlake",
    "cosmos",
    "vc709",
];
