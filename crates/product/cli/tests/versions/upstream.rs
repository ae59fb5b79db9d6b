//! A server behind the proxy, written out by hand: it answers with whatever bytes a test says, right or wrong.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// No upstream waits longer for bytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// The lines of its head, without the ends of lines.
    pub(crate) lines: Vec<String>,
    pub(crate) content: Vec<u8>,
}

impl Heard {
    /// Method, target and version.
    pub(crate) fn first_line(&self) -> &str {
        self.lines.first().map_or("", String::as_str)
    }

    pub(crate) fn target(&self) -> &str {
        self.first_line().split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a field; "" without it. It must not be there twice.
    pub(crate) fn field(&self, name: &str) -> &str {
        let mut found = self.lines.iter().skip(1).filter_map(|line| line.split_once(": "));
        let mut values = found.by_ref().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = values.next().map_or("", |(_, value)| value);
        assert!(values.next().is_none(), "{name} is there twice: {:?}", self.lines);
        value
    }
}

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    Close,
}

/// A server behind the proxy. It ends with the test's process.
pub(crate) struct Upstream {
    pub(crate) port: u16,
    heard: Arc<Mutex<Vec<Heard>>>,
    connections: Arc<AtomicUsize>,
}

trait Stream: Read + Write + Send + Sized + 'static {
    fn again(&self) -> Self;
}

impl Stream for TcpStream {
    fn again(&self) -> TcpStream {
        self.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        self.set_nodelay(true).expect("no delay");
        self.try_clone().expect("a descriptor")
    }
}

impl Stream for UnixStream {
    fn again(&self) -> UnixStream {
        self.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        self.try_clone().expect("a descriptor")
    }
}

impl Upstream {
    /// Answers each request by what `answer` writes.
    pub(crate) fn start(
        answer: impl Fn(&Heard, &mut dyn Write) -> Then + Clone + Send + 'static,
    ) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let upstream = Upstream { port, heard: Arc::default(), connections: Arc::default() };
        let (heard, connections) = (Arc::clone(&upstream.heard), Arc::clone(&upstream.connections));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::Relaxed);
                let (answer, heard) = (answer.clone(), Arc::clone(&heard));
                thread::spawn(move || serve(stream, &answer, &heard));
            }
        });
        upstream
    }

    /// The same at a socket in the file system.
    pub(crate) fn start_at(
        path: &Path,
        answer: impl Fn(&Heard, &mut dyn Write) -> Then + Clone + Send + 'static,
    ) {
        let listener = UnixListener::bind(path).expect("a socket");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answer = answer.clone();
                thread::spawn(move || serve(stream, &answer, &Mutex::default()));
            }
        });
    }

    /// One that the test serves itself.
    pub(crate) fn at(port: u16) -> Upstream {
        Upstream { port, heard: Arc::default(), connections: Arc::default() }
    }

    /// One that says what it heard.
    pub(crate) fn echo() -> Upstream {
        Upstream::start(echo)
    }

    /// The requests that came since the last call.
    pub(crate) fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut *self.heard.lock().expect("no panic"))
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Answers with the request's first line, and how much content it had.
pub(crate) fn echo(heard: &Heard, out: &mut dyn Write) -> Then {
    let text = format!("{} {}", heard.first_line(), heard.content.len());
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nx-upstream: yes\r\n\r\n", text.len());
    let content = if heard.first_line().starts_with("HEAD") { "" } else { &text };
    write(out, format!("{head}{content}").as_bytes());
    Then::Keep
}

/// Writes what the other end may have no use for any more.
pub(crate) fn write(out: &mut dyn Write, bytes: &[u8]) {
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

fn serve<S: Stream>(
    mut stream: S,
    answer: &impl Fn(&Heard, &mut dyn Write) -> Then,
    heard: &Mutex<Vec<Heard>>,
) {
    let mut reader = BufReader::new(stream.again());
    while let Some(request) = read(&mut reader) {
        heard.lock().expect("no panic").push(request.clone());
        if answer(&request, &mut stream) == Then::Close {
            return;
        }
    }
}

/// The next request; `None` at the end of the connection.
fn read(reader: &mut impl std::io::BufRead) -> Option<Heard> {
    let mut heard = Heard::default();
    loop {
        let line = line(reader)?;
        if line.is_empty() {
            break;
        }
        heard.lines.push(line);
    }
    if heard.field("transfer-encoding") == "chunked" {
        loop {
            let size = usize::from_str_radix(line(reader)?.split(';').next()?, 16).ok()?;
            let mut chunk = vec![0; size];
            reader.read_exact(&mut chunk).ok()?;
            heard.content.append(&mut chunk);
            if size == 0 {
                while !line(reader)?.is_empty() {}
                return Some(heard);
            }
            line(reader)?;
        }
    }
    let length = heard.field("content-length").parse().unwrap_or(0);
    heard.content = vec![0; length];
    reader.read_exact(&mut heard.content).ok()?;
    Some(heard)
}

fn line(reader: &mut impl std::io::BufRead) -> Option<String> {
    let mut line = String::new();
    let read = reader.read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}
