//! What `perf script` prints, as stacks.
//!
//! A sample is a line about the thread, a line for each frame from the innermost to the outermost, and an empty line. A frame
//! is an address, a symbol, and the object in brackets. The address of a frame in an object is the place in its file.

/// Fields that perf is asked for.
pub const FIELDS: &str = "comm,tid,time,event,ip,sym,dso";

/// What perf writes behind the name of a file that is not there any more.
const DELETED: &str = " (deleted)";

/// One sample: where a thread was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The thread's name.
    pub thread: String,
    /// From the innermost to the outermost.
    pub frames: Vec<Frame>,
}

/// A place in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// In the object's file; in memory if it is the kernel's.
    pub address: u64,
    /// What the symbol table calls it; empty when it has no name for it.
    pub symbol: String,
    /// The object's path.
    pub object: String,
    /// Whose code it is.
    pub side: Side,
}

/// Whose code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The program's, its libraries included.
    #[default]
    User,
    /// The kernel's.
    Kernel,
}

/// All samples in what perf printed. Lines that are none of a sample's are skipped.
pub fn stacks(printed: &str) -> Vec<Stack> {
    let mut stacks = Vec::new();
    let mut current: Option<Stack> = None;
    for line in printed.lines() {
        if line.trim().is_empty() {
            stacks.extend(current.take());
        } else if line.starts_with(['\t', ' ']) && current.is_some() {
            if let (Some(stack), Some(frame)) = (&mut current, frame(line)) {
                stack.frames.push(frame);
            }
        } else {
            stacks.extend(current.take());
            current = header(line);
        }
    }
    stacks.extend(current);
    stacks
}

/// `tercel-0  14350  13823.192205: cpu-clock:`; the name may contain spaces, the number of the thread follows it.
fn header(line: &str) -> Option<Stack> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let time = words.iter().position(|word| {
        let seconds = word.strip_suffix(':').unwrap_or("");
        seconds.contains('.') && seconds.parse::<f64>().is_ok()
    })?;
    let name = words.get(..time.checked_sub(1)?)?;
    Some(Stack { thread: name.join(" "), frames: Vec::new() })
}

/// `55d0 udp::sender::Sender::flush (/usr/bin/tercel)`.
fn frame(line: &str) -> Option<Frame> {
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.strip_suffix(')').unwrap_or(rest);
    // A file that was replaced meanwhile has a remark behind its name, and must not be taken for the new one.
    let (whole, remark) = rest.strip_suffix(DELETED).map_or((rest, ""), |whole| (whole, DELETED));
    let (symbol, object) = whole.rsplit_once(" (").unwrap_or((whole, ""));
    let object = format!("{object}{remark}");
    let symbol = if symbol.trim() == "[unknown]" { "" } else { symbol.trim() };
    // Beyond the outermost frame that could be found, perf prints whatever was on the stack.
    if symbol.is_empty() && matches!(object.as_str(), "[unknown]" | "") {
        return None;
    }
    // Modules stand in brackets too, but for the helpers that the kernel lends to programs.
    let is_kernel =
        object.starts_with('[') && !matches!(object.as_str(), "[vdso]" | "[vsyscall]" | "[heap]" | "[stack]");
    let is_module = object.ends_with(".ko") || object.contains(".ko.");
    let side = if is_kernel || is_module { Side::Kernel } else { Side::User };
    Some(Frame { address, symbol: symbol.to_owned(), object, side })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
tercel worker 0 14350 13823.192205: cpu-clock: \n\
\t          30e875 transport::connection::Connection::transmit (/usr/bin/tercel (deleted))\n\
\tffffffffffffffff [unknown] ([unknown])\n\
\n\
# a remark\n\
tercel 14350 13823.200056:    1003009 cpu-clock: \n\
\tffffffff8162f4ab __slab_free ([kernel.kallsyms])\n\
\tffffffffc0a01234 veth_xmit ([veth])\n\
\t    7ffd12345678 clock_gettime ([vdso])\n\
\t          10ac4d [unknown] (/usr/lib/libc.so.6)\n";

    #[test]
    fn samples_are_read_whole() {
        let stacks = stacks(PRINTED);
        assert_eq!(stacks.len(), 2, "{stacks:?}");
        assert_eq!(stacks[0].thread, "tercel worker 0");
        let frame = &stacks[0].frames[0];
        assert_eq!((frame.address, frame.side), (0x30_e875, Side::User));
        assert_eq!(frame.symbol, "transport::connection::Connection::transmit");
        assert_eq!(frame.object, "/usr/bin/tercel (deleted)");
        assert_eq!(stacks[0].frames.len(), 1, "what is beyond the outermost frame is no frame");
        let sides: Vec<Side> = stacks[1].frames.iter().map(|frame| frame.side).collect();
        assert_eq!(sides, [Side::Kernel, Side::Kernel, Side::User, Side::User]);
        assert_eq!(stacks[1].frames[3].symbol, "");
    }

    #[test]
    fn what_is_no_sample_is_skipped() {
        assert_eq!(stacks(""), []);
        assert_eq!(stacks("\n\n\t 12 a (b)\nnonsense\n\t zz a (b)\n"), []);
    }
}
