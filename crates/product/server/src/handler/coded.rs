//! The coding in which a file is sent: that of a file beside it, else one in which it is coded on demand.

use super::representation::Representation;
use super::{Files, Lookup};
use crate::body::Source;
use crate::compress::results::{Content, Key};
use crate::compress::{Accepted, Coding, Compression, Siblings};
use crate::conditional::Validators;
use crate::files::root::OpenError;
use crate::kept_work::Known;
use crate::readers::ResultWaker;
use crate::request::{Head, Name};
use crate::response::Value;
use base::time::Instant;
use std::sync::Arc;

/// RFC 9110 §12.5.5: other clients may get other codings.
const VARY: &[(&str, &str)] = &[("vary", "accept-encoding")];

/// How far the search for a file in a coding has come. A request that waits for the disk keeps it, so that no look-up is repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Search {
    /// It is not known whether there is the file.
    #[default]
    Begun,
    /// There is; so many files beside it were looked for.
    Beside(usize),
}

/// Compression of a handler's files.
#[derive(Debug)]
pub(super) struct Coder {
    compression: Compression,
    siblings: Siblings,
    /// What the request at hand needs.
    wanted: Option<(Key, Content)>,
}

impl Coder {
    pub(super) fn new(compression: Compression) -> Box<Coder> {
        Box::new(Coder { compression, siblings: Siblings::default(), wanted: None })
    }

    /// Has a thread code what the request at hand needs; whether it needs any.
    pub(super) fn ask(&mut self, wake_target: ResultWaker<'_>) -> bool {
        let Some((key, content)) = self.wanted.take() else { return false };
        self.compression.results.ask(key, content, wake_target);
        true
    }
}

impl Files {
    /// As [`Files::find`], in the coding that suits the client.
    pub(super) fn find_coded(
        &mut self,
        head: &Head,
        path: &mut Vec<u8>,
        search: &mut Search,
        now: Instant,
    ) -> Result<Lookup, OpenError> {
        let Some(coder) = &self.coder else { return self.find(path, now) };
        let accepted = coder.compression.accepted(head.value(Name::AcceptEncoding));
        let mut plain = None;
        if *search == Search::Begun {
            match self.find(path, now)? {
                Lookup::Folder => return Ok(Lookup::Folder),
                Lookup::Representation(found) => plain = Some(found),
            }
            *search = Search::Beside(0);
        }
        if let Some(found) = self.find_sibling(accepted, path, search, now)? {
            return Ok(Lookup::Representation(found));
        }
        let plain = match plain {
            Some(plain) => plain,
            None => match self.find(path, now)? {
                Lookup::Folder => return Ok(Lookup::Folder),
                Lookup::Representation(found) => found,
            },
        };
        let found = Representation { fields: VARY, whole: None, ..plain };
        match accepted.first() {
            Some(coding) => self.coded(coding, path, found, now).map(Lookup::Representation),
            None => Ok(Lookup::Representation(found)),
        }
    }

    /// A coded file beside that at `path`.
    fn find_sibling(
        &mut self,
        accepted: Accepted,
        path: &mut Vec<u8>,
        search: &mut Search,
        now: Instant,
    ) -> Result<Option<Representation>, OpenError> {
        let Search::Beside(tried) = *search else { return Ok(None) };
        for (number, coding) in accepted.iter().enumerate().skip(tried) {
            *search = Search::Beside(number);
            if self.coder.as_ref().is_some_and(|coder| coder.siblings.is_absent(path, coding, now)) {
                continue;
            }
            let len = path.len();
            path.extend_from_slice(coding.suffix().as_bytes());
            let found = self.find(path, now);
            path.truncate(len);
            match found {
                Ok(Lookup::Representation(found)) => return Ok(Some(found.beside(coding, path))),
                Err(error @ (OpenError::Waiting | OpenError::Exhausted)) => return Err(error),
                Ok(Lookup::Folder) | Err(OpenError::Absent | OpenError::Forbidden | OpenError::Broken) => {
                    if let Some(coder) = &mut self.coder {
                        coder.siblings.note_absent(path, coding, now);
                    }
                }
            }
        }
        *search = Search::Beside(Coding::ALL.len());
        Ok(None)
    }

    /// What was found at `path` in this coding, if it is worth it.
    fn coded(
        &mut self,
        coding: Coding,
        path: &[u8],
        found: Representation,
        now: Instant,
    ) -> Result<Representation, OpenError> {
        let Some(coder) = &mut self.coder else { return Ok(found) };
        let is_wanted = coder.compression.wants(found.content_type, found.size);
        let Some(entry) = self.cache.fresh(path, now).filter(|_| is_wanted) else { return Ok(found) };
        let key = (entry.identity, coding);
        match coder.compression.results.find(&key) {
            // Coded it is no smaller, or too many others are being coded.
            Known::Done(None) | Known::Busy => Ok(found),
            Known::Done(Some(coded)) => Ok(Representation {
                size: coded.bytes.len() as u64,
                source: Source::Memory(coded.bytes),
                validators: coded.validators,
                coding: Some(coding),
                ..found
            }),
            Known::Nothing => {
                let content = match &found.source {
                    Source::Memory(bytes) => Content::Memory(bytes.clone()),
                    Source::File { file, .. } => Content::File(Arc::clone(file)),
                    Source::Generated => return Ok(found),
                };
                coder.wanted = Some((key, content));
                Err(OpenError::Waiting)
            }
        }
    }
}

impl Representation {
    /// The representation of the file at `path` that this one is, which lies beside it.
    fn beside(self, coding: Coding, path: &[u8]) -> Representation {
        // Both files could have one time and size.
        let etag = String::from_utf8_lossy(self.validators.etag.as_bytes());
        let etag = Value::from(format!("{}-{}\"", etag.trim_end_matches('"'), coding.name()));
        Representation {
            content_type: crate::content_type::of(path),
            validators: Arc::new(Validators { etag, ..Validators::clone(&self.validators) }),
            coding: Some(coding),
            fields: VARY,
            whole: None,
            ..self
        }
    }
}
