//! Failures of a command, and their exit status.

use std::fmt;
use std::process::ExitCode;

/// The reason for a command's failure.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad usage or input, which the user can correct. Status 2.
    Input(anyhow::Error),
    /// The run failed. Status 1.
    Run(anyhow::Error),
}

impl Failure {
    pub(crate) fn input(error: impl Into<anyhow::Error>) -> Failure {
        Failure::Input(error.into())
    }

    pub(crate) fn run(error: impl Into<anyhow::Error>) -> Failure {
        Failure::Run(error.into())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Input(_) => ExitCode::from(2),
            Failure::Run(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Input(error) | Failure::Run(error)) = self;
        write!(f, "{error:#}")
    }
}
