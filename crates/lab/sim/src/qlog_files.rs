//! Traces (qlog) of a run's connections: those that the scenario draws, or all of them with `SIM_QLOG=FOLDER`, which keeps them as
//! files. Every event of every trace is checked against the schemas of the drafts.

use crate::scenario::Scenario;
use qlog::{Beginning, Keep, Output, Refused, Tracer};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A trace, and the name of its file.
type Named = (String, Vec<u8>);

#[derive(Clone, Debug, Default)]
struct Files(Arc<Mutex<Vec<Named>>>);

#[derive(Debug)]
struct Folder {
    files: Files,
    keep: Keep,
}

impl Tracer for Folder {
    fn begin(&self, beginning: &Beginning<'_>) -> Option<qlog::Trace> {
        let mut name = String::new();
        for byte in beginning.original_dcid {
            let _ = write!(name, "{byte:02x}");
        }
        let mut files = self.files.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.push((format!("{name}_{}.sqlog", beginning.role()), Vec::new()));
        let file = File { files: self.files.clone(), index: files.len() - 1 };
        Some(qlog::Trace::new(beginning, self.keep, Box::new(file)))
    }
}

struct File {
    files: Files,
    index: usize,
}

impl File {
    fn append(&self, bytes: &[u8]) {
        let mut files = self.files.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = files.get_mut(self.index) {
            file.extend_from_slice(bytes);
        }
    }
}

impl Output for File {
    fn write(&mut self, chunk: Vec<u8>) -> Result<(), Refused> {
        self.append(&chunk);
        Ok(())
    }

    fn finish(&mut self, last: Vec<u8>) {
        self.append(&last);
    }
}

/// The traces of a run.
#[derive(Debug)]
pub struct QlogFiles {
    files: Files,
    folder: Option<PathBuf>,
}

impl QlogFiles {
    /// The scenario with traces, if it asks for them or `SIM_QLOG` names a folder.
    pub fn start(scenario: &Scenario) -> (QlogFiles, Scenario) {
        let traces =
            QlogFiles { files: Files::default(), folder: std::env::var_os("SIM_QLOG").map(PathBuf::from) };
        let mut scenario = scenario.clone();
        let keep = if traces.folder.is_some() { Some(Keep::default()) } else { scenario.traced };
        if let Some(keep) = keep {
            let tracer: Arc<dyn Tracer> = Arc::new(Folder { files: traces.files.clone(), keep });
            scenario.client.qlog = Some(Arc::clone(&tracer));
            scenario.server.qlog = Some(tracer);
        }
        (traces, scenario)
    }

    /// Checks the traces, once the connections have gone, and writes the files. Returns how many events there are.
    ///
    /// # Errors
    /// A trace that is not valid, or that cannot be written, in words.
    pub fn finish(self) -> Result<u64, String> {
        let files = core::mem::take(&mut *self.files.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut events = 0;
        for (name, bytes) in files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            if let Some(folder) = &self.folder {
                let path = folder.join(name);
                let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, bytes));
                written.map_err(|error| format!("{}: {error}", path.display()))?;
            }
            let records = qlog::check::records(bytes).map_err(|error| format!("trace {name}: {error}"))?;
            // The first record is the header.
            events += records.len() as u64 - 1;
        }
        Ok(events)
    }
}
