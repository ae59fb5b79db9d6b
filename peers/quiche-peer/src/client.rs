//! A connection with its requests that are not answered yet.

use crate::Lent;
use quiche::h3::{self, Event, NameValue};
use site::{Body, Content};
use std::collections::HashMap;
use std::time::Instant;

pub(crate) struct Client {
    pub(crate) quic: quiche::Connection<Lent>,
    http: Option<h3::Connection>,
    answers: HashMap<u64, Answer>,
    /// When something is to be done though nothing comes.
    pub(crate) deadline: Option<Instant>,
}

/// A response that is not over.
struct Answer {
    /// Until it has gone.
    head: Option<[h3::Header; 2]>,
    body: Option<Body>,
}

impl Client {
    pub(crate) fn new(quic: quiche::Connection<Lent>) -> Client {
        Client { quic, http: None, answers: HashMap::new(), deadline: None }
    }

    /// Takes new requests, and goes on with old ones where there is room.
    pub(crate) fn answer(&mut self, config: &h3::Config, content: &Content) {
        if self.http.is_none() && self.quic.is_established() {
            self.http = h3::Connection::with_transport(&mut self.quic, config).ok();
        }
        let Some(http) = &mut self.http else { return };
        for id in self.quic.writable() {
            let is_over =
                self.answers.get_mut(&id).is_some_and(|answer| answer.advance(http, &mut self.quic, id));
            if is_over {
                self.answers.remove(&id);
            }
        }
        loop {
            match http.poll(&mut self.quic) {
                Ok((id, Event::Headers { list, .. })) => {
                    let path = list.iter().find(|field| field.name() == b":path").map(|field| field.value());
                    let mut answer = Answer::to(path.unwrap_or_default(), content);
                    if !answer.advance(http, &mut self.quic, id) {
                        self.answers.insert(id, answer);
                    }
                }
                Ok((id, Event::Reset(_))) => {
                    self.answers.remove(&id);
                }
                Ok(_) => {}
                // Nothing more, or the connection is closing.
                Err(_) => return,
            }
        }
    }
}

impl Answer {
    fn to(path: &[u8], content: &Content) -> Answer {
        let body = std::str::from_utf8(path).ok().and_then(|path| content.find(path));
        let (status, length) = body.as_ref().map_or(("404", 0), |body| ("200", body.left()));
        let field = |name: &[u8], value: &str| h3::Header::new(name, value.as_bytes());
        Answer {
            head: Some([field(b":status", status), field(b"content-length", &length.to_string())]),
            body,
        }
    }

    /// Writes as much as there is room for; whether that was all, or the client does not want it any more.
    fn advance(&mut self, http: &mut h3::Connection, quic: &mut quiche::Connection<Lent>, id: u64) -> bool {
        let is_empty = self.body.as_ref().is_none_or(|body| body.left() == 0);
        if let Some(head) = &self.head {
            match http.send_response(quic, id, head, is_empty) {
                Ok(()) => self.head = None,
                Err(h3::Error::StreamBlocked) => return false,
                Err(_) => return true,
            }
        }
        let Some(body) = &mut self.body else { return true };
        while body.left() > 0 {
            let mut piece = body.piece();
            let is_last = piece.len() as u64 == body.left();
            match http.send_body_zc(quic, id, &mut piece, is_last) {
                Ok(sent) => body.taken(sent),
                Err(h3::Error::Done) => return false,
                Err(_) => return true,
            }
        }
        true
    }
}
