//! How the process that ends and the one that takes its place talk: a stream between both, and descriptors on it.
//!
//! ```text
//! old process                                                     new process
//!   the estate ─────────────────────────────────────────────────>  reads its configuration, takes the sockets, starts nothing
//!                                             <────────── Ready ─
//!   takes nothing in any more
//!   the handshakes under way ───────────────────────────────────>  starts its threads
//!                                             <──────── Serving ─
//!   lets its connections end
//! ```
//!
//! If the stream ends before [`Word::Serving`], the new process has failed, and the old one goes on.

use super::estate::{Estate, Inheritance};
use super::predecessor::Handshake;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use transport::Predecessor;
use wire::cid::ConnectionId;

/// Most handshakes that are told; those beyond fail, and their clients begin again.
const MAX_LISTED: usize = 1 << 16;
/// Descriptors in one message; the kernel takes 253.
const AT_ONCE: usize = 64;
/// The longest estate, in bytes, and the most descriptors of one.
const MAX_TEXT: usize = 1 << 20;
const MAX_DESCRIPTORS: usize = 8_192;
/// A handshake as it is written: generation, worker, length, connection ID.
const LISTED_LEN: usize = 3 + 20;

/// What the new process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Word {
    /// It has all it needs.
    Ready = b'R',
    /// It serves.
    Serving = b'S',
}

/// One end.
#[derive(Debug)]
pub struct Channel(UnixStream);

impl Channel {
    /// Both ends, the second for another process.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn pair() -> io::Result<(Channel, OwnedFd)> {
        let (own, other) = UnixStream::pair()?;
        Ok((Channel(own), other.into()))
    }

    /// The end that was passed to this process.
    pub fn of(passed: OwnedFd) -> Channel {
        Channel(passed.into())
    }

    /// How long to wait for what the other process says or takes.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(patience))?;
        self.0.set_write_timeout(Some(patience))
    }

    /// Leaves the estate.
    ///
    /// # Errors
    /// The other process has ended, or does not read in time.
    pub fn leave(&mut self, estate: &Estate) -> io::Result<()> {
        let Estate { text, descriptors } = estate;
        self.send(text.as_bytes())?;
        self.0.write_all(&(descriptors.len() as u32).to_be_bytes())?;
        for descriptors in descriptors.chunks(AT_ONCE) {
            let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(|of| of.as_fd()).collect();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(&borrowed));
            let count = [descriptors.len() as u8];
            sendmsg(&self.0, &[IoSlice::new(&count)], &mut ancillary, SendFlags::NOSIGNAL)?;
        }
        Ok(())
    }

    /// Takes it.
    ///
    /// # Errors
    /// The other process has ended, or is of another version.
    pub fn inherit(&mut self) -> io::Result<Inheritance> {
        let text = self.receive(MAX_TEXT)?;
        let mut count = [0; 4];
        self.0.read_exact(&mut count)?;
        let count = u32::from_be_bytes(count) as usize;
        let mut descriptors = Vec::new();
        while descriptors.len() < count.min(MAX_DESCRIPTORS) {
            descriptors.extend(self.receive_descriptors()?);
        }
        let read = String::from_utf8(text).ok().and_then(|text| Inheritance::read(&text, descriptors));
        read.ok_or_else(|| {
            io::Error::other(
                "the server that runs is of a version that passes on what this one does not know: restart it",
            )
        })
    }

    fn receive_descriptors(&mut self) -> io::Result<Vec<OwnedFd>> {
        let mut count = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        recvmsg(&self.0, &mut [IoSliceMut::new(&mut count)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let mut received = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                received.extend(descriptors);
            }
        }
        if received.is_empty() || received.len() != usize::from(count[0]) {
            return Err(io::Error::other("the system does not pass all sockets on: see ulimit -n"));
        }
        Ok(received)
    }

    /// Says it.
    ///
    /// # Errors
    /// The other process has ended.
    pub fn say(&mut self, word: Word) -> io::Result<()> {
        self.0.write_all(&[word as u8])
    }

    /// Waits until the other process says it.
    ///
    /// # Errors
    /// The other process has ended, says something else, or nothing in time.
    pub fn hear(&mut self, word: Word) -> io::Result<()> {
        let mut heard = [0];
        self.0.read_exact(&mut heard)?;
        if heard[0] == word as u8 { Ok(()) } else { Err(io::Error::other("it says something unknown")) }
    }

    /// Lists the handshakes that are under way.
    ///
    /// # Errors
    /// The other process has ended.
    pub fn list(&mut self, handshakes: &[Handshake]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(handshakes.len() * LISTED_LEN);
        for Handshake { destination, at } in handshakes.iter().take(MAX_LISTED) {
            let cid = destination.as_slice();
            let mut listed = [0; LISTED_LEN];
            listed[..3].copy_from_slice(&[at.generation, at.worker, cid.len() as u8]);
            if let Some(room) = listed.get_mut(3..3 + cid.len()) {
                room.copy_from_slice(cid);
            }
            bytes.extend_from_slice(&listed);
        }
        self.send(&bytes)
    }

    /// Hears which handshakes are under way in the other process, which takes nothing in any more.
    ///
    /// # Errors
    /// The other process has ended.
    pub fn hear_listed(&mut self) -> io::Result<Vec<Handshake>> {
        let bytes = self.receive(MAX_LISTED * LISTED_LEN)?;
        let (listed, _) = bytes.as_chunks::<LISTED_LEN>();
        let read = |listed: &[u8; LISTED_LEN]| {
            let &[generation, worker, length, ref cid @ ..] = listed;
            let destination = ConnectionId::new(cid.get(..usize::from(length))?)?;
            Some(Handshake { destination, at: Predecessor { generation, worker } })
        };
        Ok(listed.iter().filter_map(read).collect())
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(&(bytes.len() as u32).to_be_bytes())?;
        self.0.write_all(bytes)
    }

    fn receive(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > most {
            return Err(io::Error::other("it says more than is expected"));
        }
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, an upgrade of a server of many cores and addresses could lose sockets on the way, or one that hangs hold up the other.
    #[test]
    fn hundreds_of_descriptors_and_handshakes_arrive() {
        let (mut old, other) = Channel::pair().unwrap();
        let mut new = Channel::of(other);
        let mut estate = Estate { text: "tercel upgrade 1\n".to_owned(), descriptors: Vec::new() };
        for number in 0..200 {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            estate.add_other(&format!("number{number}"), socket.as_fd()).unwrap();
        }
        old.leave(&estate).unwrap();
        let mut inherited = new.inherit().unwrap();
        assert!((0..200).all(|number| inherited.take_other(&format!("number{number}")).is_some()));
        new.say(Word::Ready).unwrap();
        old.hear(Word::Ready).unwrap();
        let handshake = |number: u16| Handshake {
            destination: ConnectionId::new(&vec![number as u8; usize::from(number % 21)]).unwrap(),
            at: Predecessor { generation: number as u8, worker: 1 },
        };
        let listed: Vec<Handshake> = (0..4_096).map(handshake).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| old.list(&listed).unwrap());
            assert_eq!(new.hear_listed().unwrap(), listed);
        });
        old.set_patience(Duration::from_millis(10)).unwrap();
        assert_eq!(old.hear(Word::Serving).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        new.say(Word::Ready).unwrap();
        assert!(old.hear(Word::Serving).is_err());
        new.0.write_all(&u32::MAX.to_be_bytes()).unwrap();
        assert!(old.receive(MAX_TEXT).is_err(), "never allocated by a declared length");
        drop(new);
        assert_eq!(old.hear(Word::Serving).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
