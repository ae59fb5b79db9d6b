//! The parts of a run. callgrind writes down what it has counted whenever [`dump_here`] is called, and begins anew.

use std::hint::black_box;

/// One figure: instructions for each of `count` pieces of work.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Functions of this program, with all that they call. Empty: all that the process did.
    pub(crate) functions: &'static [&'static str],
    pub(crate) count: u64,
}

/// Numbers the parts.
#[derive(Default)]
pub(crate) struct Parts {
    ended: u32,
}

impl Parts {
    /// What was done since the last part is not counted.
    pub(crate) fn begin(&mut self) {
        self.ended += 1;
        dump_here(self.ended);
    }

    /// A part ends, which has these figures.
    pub(crate) fn end(&mut self, rows: &[Row]) {
        self.begin();
        for Row { name, functions, count } in rows {
            println!("{}\t{name}\t{}\t{count}", self.ended, functions.join(","));
        }
    }
}

/// callgrind finds it by its name.
#[inline(never)]
fn dump_here(part: u32) {
    black_box(part);
}
