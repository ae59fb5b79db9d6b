//! The functions that were inlined at an address, from the line tables of its object.
//!
//! perf could ask for them too, but starts a process for each address; here every object is opened once and every address
//! is looked up once. An object without line tables, or one that cannot be opened, leaves the names of its symbols.

use crate::names;
use crate::script::{Frame, Side, Stack};
use addr2line::Loader;
use object::read::{Object as _, ObjectSegment as _};
use std::collections::HashMap;
use std::path::Path;

/// Reads objects and remembers what it found.
#[derive(Default)]
pub struct Inlines {
    objects: HashMap<String, Option<Opened>>,
    known: HashMap<(String, u64), Vec<String>>,
}

/// An object with its line tables.
struct Opened {
    loader: Loader,
    segments: Vec<Segment>,
}

/// A part of a file, and where it lies in memory, before it is moved as a whole.
struct Segment {
    in_file: u64,
    in_memory: u64,
    size: u64,
}

/// A function in a stack: a frame of its own, or inlined into one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// With its module, without type parameters.
    pub name: String,
    /// Whose code it is.
    pub side: Side,
}

impl Inlines {
    /// All functions of a stack, from the innermost to the outermost.
    pub fn expand(&mut self, stack: &Stack) -> Vec<Function> {
        let mut functions = Vec::new();
        for frame in &stack.frames {
            let names = match frame.side {
                Side::Kernel => vec![symbol(frame)],
                Side::User => self.names(frame),
            };
            functions.extend(names.into_iter().map(|name| Function { name, side: frame.side }));
        }
        functions
    }

    fn names(&mut self, frame: &Frame) -> Vec<String> {
        let key = (frame.object.clone(), frame.address);
        if let Some(names) = self.known.get(&key) {
            return names.clone();
        }
        let opened = self.objects.entry(frame.object.clone()).or_insert_with(|| Opened::new(&frame.object));
        let found = opened.as_ref().map(|opened| opened.names(frame.address)).unwrap_or_default();
        let names = if found.is_empty() { vec![symbol(frame)] } else { found };
        self.known.insert(key, names.clone());
        names
    }
}

/// What a frame is called if nothing but its symbol is known.
fn symbol(frame: &Frame) -> String {
    if frame.symbol.is_empty() {
        let file = Path::new(&frame.object).file_name().unwrap_or_default();
        return format!("[{}]", file.to_string_lossy().trim_matches(['[', ']']));
    }
    let demangled = addr2line::demangle_auto(frame.symbol.as_str().into(), None);
    match frame.side {
        Side::Kernel => demangled.into_owned(),
        Side::User => names::cleaned(&demangled),
    }
}

impl Opened {
    fn new(path: &str) -> Option<Opened> {
        let bytes = std::fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let segments = file.segments().map(|segment| {
            let (in_file, size) = segment.file_range();
            Segment { in_file, in_memory: segment.address(), size }
        });
        Some(Opened { segments: segments.collect(), loader: Loader::new(path).ok()? })
    }

    /// From the innermost to the outermost; none without line tables.
    fn names(&self, in_file: u64) -> Vec<String> {
        let segment = self
            .segments
            .iter()
            .find(|part| in_file.checked_sub(part.in_file).is_some_and(|at| at < part.size));
        let Some(segment) = segment else { return Vec::new() };
        let Ok(mut frames) = self.loader.find_frames(in_file - segment.in_file + segment.in_memory) else {
            return Vec::new();
        };
        let mut names = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let Some(name) = frame.function.as_ref().and_then(|function| function.demangle().ok()) else {
                continue;
            };
            let file = frame.location.as_ref().and_then(|location| location.file);
            names.push(names::placed(&name, file));
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_not_there_leaves_its_symbols() {
        let frame = |symbol: &str, object: &str| Frame {
            address: 0x1000,
            symbol: symbol.to_owned(),
            object: object.to_owned(),
            side: Side::User,
        };
        let frames = vec![
            frame("_ZN3udp4send17h0123456789abcdefE", "/nowhere/tercel"),
            frame("", "/nowhere/libc.so.6"),
        ];
        let functions = Inlines::default().expand(&Stack { thread: String::new(), frames });
        let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, ["udp::send", "[libc.so.6]"]);
    }
}
