//! The thread that writes: takes chunks off the queue and appends each to the file of its trace.

use crate::files;
use crate::queue::{Item, Position, Queue};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Files that are open at a time. Traces of more connections than these are closed and opened again.
const MAX_OPEN: usize = 64;

/// A file that more may follow for.
enum Target {
    Open(PathBuf, File),
    Closed(PathBuf),
    /// It could not be written, or is one too many: what follows is dropped.
    Broken,
}

/// Writes until the queue is closed and empty.
pub(crate) fn run(queue: &Queue, folder: &Path, max_files: u64) {
    let mut writer = Writer { queue, folder, max_files, files: 0, targets: HashMap::new(), open: 0 };
    while let Some(item) = queue.next() {
        writer.write(item);
    }
}

struct Writer<'a> {
    queue: &'a Queue,
    folder: &'a Path,
    max_files: u64,
    files: u64,
    targets: HashMap<u64, Target>,
    open: usize,
}

impl Writer<'_> {
    fn write(&mut self, item: Item) {
        let Item { number, name, bytes, position } = item;
        let target = match self.targets.remove(&number) {
            Some(Target::Broken) => Target::Broken,
            found if bytes.is_empty() => match found {
                Some(target) => target,
                None => return,
            },
            found => match self.append(found, &name, &bytes) {
                Ok(target) => target,
                Err(error) => {
                    let failure = format!("{name}.sqlog: {error}");
                    self.queue.count(|tally| {
                        tally.failed += 1;
                        tally.failure.get_or_insert(failure);
                    });
                    Target::Broken
                }
            },
        };
        if position == Position::Last {
            self.open -= usize::from(matches!(target, Target::Open(..)));
        } else {
            self.targets.insert(number, target);
        }
    }

    fn append(&mut self, found: Option<Target>, name: &str, bytes: &[u8]) -> io::Result<Target> {
        let opened = match found {
            Some(Target::Open(path, file)) => {
                self.open -= 1;
                Ok((path, file))
            }
            Some(Target::Closed(path)) => files::reopen(&path).map(|file| (path, file)),
            Some(Target::Broken) => return Ok(Target::Broken),
            None if self.files >= self.max_files => {
                self.queue.count(|tally| tally.left_out += 1);
                return Ok(Target::Broken);
            }
            None => files::create(self.folder, name).inspect(|_| {
                self.files += 1;
                self.queue.count(|tally| tally.files += 1);
            }),
        };
        let (path, mut file) = opened?;
        file.write_all(bytes)?;
        self.queue.count(|tally| tally.bytes += bytes.len() as u64);
        if self.open >= MAX_OPEN {
            self.close_all();
        }
        self.open += 1;
        Ok(Target::Open(path, file))
    }

    fn close_all(&mut self) {
        for target in self.targets.values_mut() {
            if let Target::Open(path, _) = target {
                *target = Target::Closed(std::mem::take(path));
            }
        }
        self.open = 0;
    }
}
