//! A TCP socket whose bytes and system calls are counted, and which reads much at a time.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that are read at once. rustls asks for 4 KiB at a time, which would be a system call for each quarter of a record.
const READ_AT_ONCE: usize = 32 << 10;

/// What the sockets of a thread have counted.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) sent_bytes: Cell<u64>,
    pub(super) received_bytes: Cell<u64>,
    /// Reads that brought something or the end, and writes that took something.
    pub(super) calls: Cell<u64>,
}

fn add(cell: &Cell<u64>, count: u64) {
    cell.set(cell.get() + count);
}

/// The socket.
#[derive(Debug)]
pub(super) struct Metered {
    tcp: TcpStream,
    meter: Rc<Meter>,
    /// What was read and not handed on: `from..to`.
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
}

impl Metered {
    pub(super) fn new(tcp: TcpStream, meter: Rc<Meter>) -> Metered {
        Metered { tcp, meter, buffer: Box::default(), from: 0, to: 0 }
    }

    fn read(&mut self, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, out))?;
        add(&self.meter.calls, 1);
        add(&self.meter.received_bytes, (out.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }

    fn count_sent(&self, sent: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &sent {
            add(&self.meter.calls, 1);
            add(&self.meter.sent_bytes, *bytes as u64);
        }
        sent
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.from == this.to {
            if out.remaining() >= READ_AT_ONCE {
                return this.read(cx, out);
            }
            let mut buffer = core::mem::take(&mut this.buffer);
            if buffer.is_empty() {
                buffer = vec![0; READ_AT_ONCE].into_boxed_slice();
            }
            let mut fresh = ReadBuf::new(&mut buffer);
            let outcome = this.read(cx, &mut fresh);
            (this.from, this.to) = (0, fresh.filled().len());
            this.buffer = buffer;
            ready!(outcome)?;
        }
        let waiting = this.buffer.get(this.from..this.to).unwrap_or_default();
        let taken = waiting.get(..out.remaining()).unwrap_or(waiting);
        out.put_slice(taken);
        this.from += taken.len();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.tcp).poll_write(cx, bytes);
        self.count_sent(sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.tcp).poll_write_vectored(cx, pieces);
        self.count_sent(sent)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
