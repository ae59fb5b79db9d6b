//! The queue between what provides content and what reads it.
//!
//! Either end may be on any thread. An end that is dropped wakes the other one.

use crate::error::BodyError;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Borrowed bytes are copied into memory of this size, in bytes, which chunks share.
const BLOCK: usize = 64 << 10;

/// How the content ends.
#[derive(Debug)]
enum End {
    Open,
    /// Complete, with the fields that follow it.
    Complete(Option<HeaderMap>),
    Failed(BodyError),
    /// The reader has been told.
    Told,
}

#[derive(Debug)]
struct State {
    chunks: VecDeque<Bytes>,
    /// Bytes in `chunks`.
    queued: usize,
    capacity: usize,
    end: End,
    /// Woken when there is something to read. While it is there the reader waits.
    reader: Option<Waker>,
    /// Woken when there is room, and when the reader goes.
    writer: Option<Waker>,
    has_reader: bool,
}

impl State {
    /// Room is announced at half of the capacity, so that a slow reader does not wake the writer for each chunk.
    fn has_room(&self) -> bool {
        self.queued <= self.capacity / 2
    }
}

#[derive(Debug)]
struct Shared(Mutex<State>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue that takes bytes while fewer than `capacity` wait.
pub(crate) fn queue(capacity: usize) -> (Producer, Consumer) {
    let state = State {
        chunks: VecDeque::new(),
        queued: 0,
        capacity: capacity.max(1),
        end: End::Open,
        reader: None,
        writer: None,
        has_reader: true,
    };
    let shared = Arc::new(Shared(Mutex::new(state)));
    (Producer { shared: Arc::clone(&shared), block: BytesMut::new() }, Consumer { shared })
}

/// The end that provides content. Dropped before [`Producer::end`], the content fails.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    /// Borrowed bytes are copied to it.
    block: BytesMut,
}

impl Producer {
    /// Copies borrowed bytes into the queue: all of them while fewer than the capacity wait, else none. Returns how many.
    /// Without a reader they are thrown away, which counts as taken.
    pub fn push_copy(&mut self, bytes: &[u8]) -> usize {
        let state = self.shared.lock();
        if !state.has_reader {
            return bytes.len();
        }
        if state.queued >= state.capacity {
            return 0;
        }
        if self.block.capacity() < bytes.len() {
            self.block.reserve(bytes.len().max(BLOCK));
        }
        self.block.extend_from_slice(bytes);
        let chunk = self.block.split().freeze();
        push(state, chunk);
        bytes.len()
    }

    /// Hands a chunk over, whatever waits.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        let state = self.shared.lock();
        if state.has_reader && !chunk.is_empty() {
            push(state, chunk);
        }
    }

    /// Waits until there is room; `Err` without a reader.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), crate::Closed>> {
        let mut state = self.shared.lock();
        if !state.has_reader {
            return Poll::Ready(Err(crate::Closed));
        }
        if state.queued < state.capacity {
            return Poll::Ready(Ok(()));
        }
        set(&mut state.writer, cx.waker());
        Poll::Pending
    }

    /// Has `waker` woken when there is room again after [`Producer::push_copy`] took nothing, and when the reader goes.
    pub fn set_waker(&mut self, waker: &Waker) {
        set(&mut self.shared.lock().writer, waker);
    }

    /// Whether at least half of the capacity is free, or the bytes are thrown away.
    pub fn has_room(&self) -> bool {
        let state = self.shared.lock();
        state.has_room() || !state.has_reader
    }

    /// Whether there is a reader.
    pub fn has_reader(&self) -> bool {
        self.shared.lock().has_reader
    }

    /// Whether the reader waits for content.
    pub fn is_awaited(&self) -> bool {
        self.shared.lock().reader.is_some()
    }

    /// Bytes that wait.
    pub fn queued(&self) -> usize {
        self.shared.lock().queued
    }

    /// The content is complete.
    pub fn end(&mut self, trailers: Option<HeaderMap>) {
        self.finish(End::Complete(trailers));
    }

    /// The content will not be completed. What waits is read before the reader hears of it.
    pub fn abort(&mut self, why: BodyError) {
        self.finish(End::Failed(why));
    }

    fn finish(&self, end: End) {
        let mut state = self.shared.lock();
        if matches!(state.end, End::Open) {
            state.end = end;
            let reader = state.reader.take();
            drop(state);
            reader.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.finish(End::Failed(BodyError::Aborted));
    }
}

fn push(mut state: MutexGuard<'_, State>, chunk: Bytes) {
    state.queued = state.queued.saturating_add(chunk.len());
    state.chunks.push_back(chunk);
    let reader = state.reader.take();
    drop(state);
    reader.into_iter().for_each(Waker::wake);
}

fn set(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(known) if known.will_wake(waker) => {}
        _ => *place = Some(waker.clone()),
    }
}

/// The end that reads.
#[derive(Debug)]
pub(crate) struct Consumer {
    shared: Arc<Shared>,
}

impl Consumer {
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut state = self.shared.lock();
        if let Some(chunk) = state.chunks.pop_front() {
            let had_room = state.has_room();
            state.queued = state.queued.saturating_sub(chunk.len());
            let has_room = !had_room && state.has_room();
            // It stays: a writer that was held back says so once, and is held back many times.
            let writer = if has_room { state.writer.clone() } else { None };
            drop(state);
            writer.into_iter().for_each(Waker::wake);
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        if matches!(state.end, End::Open) {
            set(&mut state.reader, cx.waker());
            return Poll::Pending;
        }
        Poll::Ready(match std::mem::replace(&mut state.end, End::Told) {
            End::Complete(trailers) => trailers.map(|trailers| Ok(Frame::trailers(trailers))),
            End::Failed(error) => Some(Err(error)),
            End::Open | End::Told => None,
        })
    }

    /// Whether nothing more comes.
    pub(crate) fn is_end(&self) -> bool {
        let state = self.shared.lock();
        state.chunks.is_empty() && matches!(state.end, End::Complete(None) | End::Told)
    }

    /// Bytes that are still to come at least, and all of them where that is known.
    pub(crate) fn size(&self) -> (u64, Option<u64>) {
        let state = self.shared.lock();
        let queued = state.queued as u64;
        let is_known = matches!(state.end, End::Complete(_) | End::Told);
        (queued, is_known.then_some(queued))
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.has_reader = false;
        state.queued = 0;
        let chunks = std::mem::take(&mut state.chunks);
        let writer = state.writer.take();
        state.reader = None;
        drop(state);
        drop(chunks);
        writer.into_iter().for_each(Waker::wake);
    }
}
