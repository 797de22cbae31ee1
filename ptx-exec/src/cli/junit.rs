//! Results as JUnit XML, which CI services display.

use std::path::Path;

use quick_junit::{NonSuccessKind, Report as Suites, TestCase, TestCaseStatus, TestSuite};

use crate::FileReport;
use crate::error::{Error, ErrorKind};
use crate::file::save;

/// The title of memory that is not as the file expects.
const DIFFERENCE: &str = "memory is not what the launch file expects";

/// The results of launches: a test suite for each file, a test case for each launch.
pub(super) struct Results(Suites);

impl Results {
    pub(super) fn new(program: &str) -> Results {
        Results(Suites::new(program))
    }

    /// A launch of this name that ran.
    pub(super) fn launch(&mut self, file: &Path, name: &str, done: &FileReport, replay: &str) {
        let mut status = TestCaseStatus::success();
        if !done.is_right() {
            status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let findings = done.report.findings.iter().map(ToString::to_string);
            let findings: Vec<String> = findings.chain(done.differences.iter().map(ToString::to_string)).collect();
            let first = done.report.findings.first();
            let (title, code) = first.map_or((DIFFERENCE, "exec-difference"), |f| (f.kind.title(), f.kind.as_str()));
            status.set_message(title).set_type(code);
            status.set_description(format!("{}\nagain: {replay}", findings.join("\n")));
        }
        let mut case = TestCase::new(name.to_owned(), status);
        case.set_classname(file.display().to_string());
        case.set_system_out(&done.report.printed);
        self.add(file, case);
    }

    /// A file, or a launch of it, that was not run.
    pub(super) fn refused(&mut self, file: &Path, error: &Error) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(error.what.clone()).set_type(error.kind.as_str()).set_description(error.to_string());
        let name = error.entry.as_deref().unwrap_or("launch file");
        let mut case = TestCase::new(name.to_owned(), status);
        case.set_classname(file.display().to_string());
        self.add(file, case);
    }

    /// Launches after a failed one.
    pub(super) fn left_out(&mut self, file: &Path, count: usize) {
        for number in 1..=count {
            let mut status = TestCaseStatus::skipped();
            status.set_message("an earlier launch of this file failed");
            self.add(file, TestCase::new(format!("launch {number} after it"), status));
        }
    }

    fn add(&mut self, file: &Path, case: TestCase) {
        let name = file.display().to_string();
        match self.0.test_suites.last_mut().filter(|suite| suite.name.as_str() == name) {
            Some(suite) => {
                suite.add_test_case(case);
            }
            None => {
                let mut suite = TestSuite::new(name);
                suite.add_test_case(case);
                self.0.add_test_suite(suite);
            }
        }
        self.0.tests = self.0.test_suites.iter().map(|s| s.tests).sum();
        self.0.failures = self.0.test_suites.iter().map(|s| s.failures).sum();
        self.0.errors = self.0.test_suites.iter().map(|s| s.errors).sum();
    }

    /// Writes the file atomically.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let fail = |what: String| {
            Error::new(ErrorKind::File, "the JUnit file cannot be written").found(format!("{}: {what}", path.display()))
        };
        let text = self.0.to_string().map_err(|e| fail(e.to_string()))?;
        save(path, text.as_bytes())
    }
}
