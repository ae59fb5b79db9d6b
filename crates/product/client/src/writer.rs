//! The way to a pipe, a terminal or a device: a thread writes, so that a reader that pauses holds up its download and nothing else. The
//! connection hears the server meanwhile, and lives.
//!
//! ```text
//! append ─▶ waiting, at most MOST bytes ─▶ the thread ─▶ write_all
//! ```
//!
//! The thread takes all that waits at once, when [`GATHERED`] bytes do or they are flushed. An owner that was refused room, or waits until
//! everything is written, hears when to look again ([`Writer::on_news`]).

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// Bytes that wait at most, beside those that are being written.
const MOST: usize = 1 << 20;
/// Bytes gathered before a write: as much as a pipe holds.
const GATHERED: usize = 64 * 1024;

/// Tells its owner that something has changed.
type News = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    is_writing: bool,
    /// What waits is to be written however little it is.
    is_flushed: bool,
    /// The owner had more than there was room for.
    was_refused: bool,
    /// The owner waits until everything is written.
    is_awaited: bool,
    /// Nothing more is written, after this.
    has_failed: bool,
    failure: Option<io::Error>,
    /// The owner is gone.
    is_over: bool,
    news: Option<News>,
}

impl State {
    fn room(&self) -> usize {
        MOST.saturating_sub(self.waiting.len())
    }

    fn has_work(&self) -> bool {
        self.waiting.len() >= GATHERED || (self.is_flushed || self.is_over) && !self.waiting.is_empty()
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One output. Dropped, its thread writes what waits and ends, if the program lives so long.
pub(crate) struct Writer(Arc<Shared>);

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("waiting", &self.0.state().waiting.len()).finish_non_exhaustive()
    }
}

impl Writer {
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn new(out: impl Write + Send + 'static) -> io::Result<Writer> {
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        Builder::new().name("output".to_owned()).spawn(move || run(&for_thread, out))?;
        Ok(Writer(shared))
    }

    /// What to call when there is room again, when everything is written, or when nothing more can be. It runs on the thread.
    pub(crate) fn on_news(&self, news: impl Fn() + Send + Sync + 'static) {
        self.0.state().news = Some(Arc::new(news));
    }

    /// For how many of `wanted` bytes there is room. An output that has failed takes all, to say so.
    #[inline]
    pub(crate) fn room(&self, wanted: usize) -> usize {
        let mut state = self.0.state();
        let room = if state.has_failed { wanted } else { state.room().min(wanted) };
        state.was_refused = room < wanted;
        room
    }

    /// Adds bytes, for which there is room.
    ///
    /// # Errors
    /// Why earlier ones could not be written.
    #[inline]
    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.state();
        check(&mut state)?;
        state.waiting.extend_from_slice(bytes);
        if state.has_work() && !state.is_writing {
            self.0.work.notify_one();
        }
        Ok(())
    }

    /// Lets the thread write what waits; does not wait for it.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub(crate) fn flush(&self) -> io::Result<()> {
        let mut state = self.0.state();
        check(&mut state)?;
        state.is_flushed = true;
        self.0.work.notify_one();
        Ok(())
    }

    /// Whether room was refused, and there is none.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.0.state();
        state.was_refused && !state.has_failed && state.room() == 0
    }

    /// Whether room was refused, and there is some now. Says so once.
    pub(crate) fn has_room_again(&self) -> bool {
        let mut state = self.0.state();
        let has_room = state.has_failed || state.room() > 0;
        has_room && core::mem::take(&mut state.was_refused)
    }

    /// Whether nothing is left to write, or can be written.
    pub(crate) fn is_done(&self) -> bool {
        let mut state = self.0.state();
        let is_done = state.has_failed || state.waiting.is_empty() && !state.is_writing;
        if !is_done {
            (state.is_awaited, state.is_flushed) = (true, true);
            self.0.work.notify_one();
        }
        is_done
    }

    /// # Errors
    /// As [`Writer::append`].
    pub(crate) fn check(&self) -> io::Result<()> {
        check(&mut self.0.state())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.0.state();
        (state.is_over, state.news) = (true, None);
        self.0.work.notify_one();
    }
}

fn check(state: &mut State) -> io::Result<()> {
    match (state.has_failed, state.failure.take()) {
        (_, Some(error)) => Err(error),
        (true, None) => Err(io::ErrorKind::BrokenPipe.into()),
        (false, None) => Ok(()),
    }
}

fn run(shared: &Shared, mut out: impl Write) {
    let mut bytes = Vec::new();
    loop {
        let mut state = shared.state();
        while !state.has_work() && !state.is_over {
            state.is_flushed &= !state.waiting.is_empty();
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.waiting.is_empty() {
            return;
        }
        core::mem::swap(&mut state.waiting, &mut bytes);
        (state.is_writing, state.is_flushed) = (true, false);
        let news = state.news.clone().filter(|_| state.was_refused);
        drop(state);
        if let Some(tell) = news {
            tell();
        }
        let outcome = out.write_all(&bytes).and_then(|()| out.flush());
        bytes.clear();
        let mut state = shared.state();
        state.is_writing = false;
        state.has_failed = outcome.is_err();
        state.failure = outcome.err();
        let is_done = state.has_failed || state.waiting.is_empty() && state.is_awaited;
        state.is_awaited &= !is_done;
        let news = state.news.clone().filter(|_| is_done);
        let has_failed = state.has_failed;
        drop(state);
        if let Some(tell) = news {
            tell();
        }
        if has_failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// Each write waits for a word, and its bytes are sent.
    struct Slow(Receiver<io::Result<()>>, Sender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().unwrap_or(Ok(()))?;
            let _ = self.1.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A writer to a reader that pauses.
    struct Paused {
        writer: Writer,
        /// One for each write: what comes of it.
        words: Sender<io::Result<()>>,
        writes: Receiver<Vec<u8>>,
        news: Receiver<()>,
    }

    impl Paused {
        fn new() -> Paused {
            let ((words, heard), (written, writes), (tell, news)) = (channel(), channel(), channel());
            let writer = Writer::new(Slow(heard, written)).unwrap();
            writer.on_news(move || tell.send(()).unwrap_or_default());
            Paused { writer, words, writes, news }
        }
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Deleted, a reader that pauses would stop the thread that drives the connection, which the server takes for dead.
    #[test]
    fn who_appends_never_waits_and_hears_when_there_is_room() {
        let Paused { writer, words: word, writes, news } = Paused::new();
        let mut taken = 0;
        // Until the thread has taken some and the rest is full.
        while taken < 3 * MOST && !writer.is_full() {
            let room = writer.room(40_000);
            writer.append(&vec![7; room]).unwrap();
            taken += room;
        }
        assert!((MOST..=2 * MOST).contains(&taken), "{taken}");
        assert!(!writer.has_room_again() && !writer.is_done());
        // What came before the thread was there is no news.
        while news.try_recv().is_ok() {}
        let mut written = 0;
        word.send(Ok(())).unwrap();
        written += writes.recv_timeout(PATIENCE).unwrap().len();
        news.recv_timeout(PATIENCE).unwrap();
        assert!(writer.has_room_again() && !writer.has_room_again(), "once");
        drop(word);
        while written < taken {
            written += writes.recv_timeout(PATIENCE).unwrap().len();
        }
        while !writer.is_done() {
            news.recv_timeout(PATIENCE).unwrap();
        }
    }

    #[test]
    fn little_waits_until_it_is_flushed_or_the_owner_is_gone() {
        let Paused { writer, words: word, writes, .. } = Paused::new();
        drop(word);
        writer.append(b"some").unwrap();
        assert!(writes.recv_timeout(Duration::from_millis(50)).is_err(), "it is gathered");
        writer.flush().unwrap();
        assert_eq!(writes.recv_timeout(PATIENCE).unwrap(), b"some");
        writer.append(b"more").unwrap();
        drop(writer);
        assert_eq!(writes.recv_timeout(PATIENCE).unwrap(), b"more");
        assert!(writes.recv_timeout(PATIENCE).is_err(), "the thread has ended");
    }

    /// Deleted, a download into a pipe whose reader has gone could wait for ever.
    #[test]
    fn a_failure_is_news_and_is_told() {
        let Paused { writer, words: word, news, .. } = Paused::new();
        writer.append(b"some").unwrap();
        assert!(!writer.is_done());
        word.send(Err(io::Error::from_raw_os_error(28))).unwrap();
        news.recv_timeout(PATIENCE).unwrap();
        assert!(writer.is_done() && !writer.is_full());
        assert_eq!(writer.room(5 * MOST), 5 * MOST);
        assert_eq!(writer.check().unwrap_err().raw_os_error(), Some(28));
        assert!(writer.append(b"x").is_err() && writer.flush().is_err());
    }

    #[test]
    fn all_bytes_come_out_in_order_whatever_their_pieces() {
        #[derive(Clone, Default)]
        struct Kept(Arc<Mutex<Vec<u8>>>);
        impl Write for Kept {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let taken = bytes.len().min(10_007);
                self.0.lock().unwrap().extend_from_slice(&bytes[..taken]);
                Ok(taken)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let kept = Kept::default();
        let writer = Writer::new(kept.clone()).unwrap();
        let told = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&told);
        let this = std::thread::current();
        writer.on_news(move || {
            count.fetch_add(1, Ordering::Relaxed);
            this.unpark();
        });
        let all: Vec<u8> = (0..6_000_000_u32).map(|place| (place % 251) as u8).collect();
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let room = writer.room(rest.len().min(1 + rest.len() % 30_011));
            writer.append(&rest[..room]).unwrap();
            rest = &rest[room..];
            if writer.is_full() {
                std::thread::park_timeout(PATIENCE);
            }
        }
        while !writer.is_done() {
            std::thread::park_timeout(PATIENCE);
        }
        assert!(*kept.0.lock().unwrap() == all && told.load(Ordering::Relaxed) > 0);
    }
}
