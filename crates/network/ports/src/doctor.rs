//! What this machine allows to a data path, and the commands that mend the rest.
//!
//! | file | holds |
//! |---|---|
//! | probes.rs | things that are tried out, each harmless and gone again |
//! | machine.rs | facts about kernel, process and limits, and what each means |
//! | interface.rs | the same for an interface |
//!
//! Facts are gathered first and judged after, so that judgement can be tested with facts of other machines. A check is a
//! small function from facts to an [`CheckResult`]; tables name them. Nothing is changed on the way, but for what is asked by
//! name: attaching a program to an interface may interrupt it for a moment.

mod interface;
mod machine;
mod probes;

use std::path::PathBuf;

/// What is to be looked at.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// Try out on this interface which AF_XDP modes it takes. Interrupts it for a moment on some cards.
    pub try_xdp: Option<String>,
    /// Where the program is that privileges would be given to.
    pub program: PathBuf,
}

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Good,
    /// Neither good nor bad.
    Note,
    /// Works, but could be better.
    Limited,
    /// Something does not work.
    Missing,
}

impl Severity {
    /// A word of at most seven letters.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Good => "ok",
            Severity::Note => "note",
            Severity::Limited => "limited",
            Severity::Missing => "missing",
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// How good it is.
    pub state: Severity,
    /// What there is, in a few words.
    pub found: String,
    /// The command that mends it, or what else to do.
    pub remedy: Option<String>,
}

impl CheckResult {
    fn new(state: Severity, found: impl Into<String>) -> CheckResult {
        CheckResult { state, found: found.into(), remedy: None }
    }

    fn good(found: impl Into<String>) -> CheckResult {
        CheckResult::new(Severity::Good, found)
    }

    fn note(found: impl Into<String>) -> CheckResult {
        CheckResult::new(Severity::Note, found)
    }

    fn limited(found: impl Into<String>) -> CheckResult {
        CheckResult::new(Severity::Limited, found)
    }

    fn missing(found: impl Into<String>) -> CheckResult {
        CheckResult::new(Severity::Missing, found)
    }

    fn with(mut self, remedy: impl Into<String>) -> CheckResult {
        self.remedy = Some(remedy.into());
        self
    }
}

/// A check's name and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, in lower case: "receive buffer".
    pub check: &'static str,
    /// What came of it.
    pub answer: CheckResult,
}

/// Findings about one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What they are about: "machine", or an interface's name.
    pub about: String,
    /// In the order of the table.
    pub findings: Vec<Finding>,
}

/// Examines the machine and each of its interfaces.
///
/// # Errors
/// The kernel does not list its interfaces, or there is none of the name that was given.
pub fn examine(request: &CheckOptions) -> Result<Vec<Section>, String> {
    let links =
        netlink::links().map_err(|error| format!("the kernel does not list its interfaces: {error}"))?;
    if let Some(name) = &request.try_xdp {
        interface::may_try(name, &links)?;
    }
    let facts = machine::Facts::gather(request);
    let mut sections = vec![Section { about: "machine".to_owned(), findings: machine::judge(&facts) }];
    for link in links {
        let about = link.name.clone();
        let tried = match &request.try_xdp {
            Some(name) if *name == about => probes::xdp_modes(&about),
            _ => Vec::new(),
        };
        let facts = interface::Facts::gather(link, tried);
        sections.push(Section { about, findings: interface::judge(&facts) });
    }
    Ok(sections)
}
