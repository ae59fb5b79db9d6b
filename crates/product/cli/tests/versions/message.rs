//! A request and its answer, whichever version carried them, and what of an answer must be the same.

use std::collections::BTreeMap;

/// Who asks: for which name in TLS, with which certificate, and by which proxy.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) name: &'static str,
    pub(crate) identity: Option<crypto::Identity>,
    /// What connections over TCP begin with, before TLS.
    pub(crate) header: Vec<u8>,
}

impl Default for Who {
    fn default() -> Who {
        Who { name: "localhost", identity: None, header: Vec::new() }
    }
}

impl Who {
    pub(crate) fn tls(&self, protocol: &str) -> crypto::TlsOptions {
        crypto::TlsOptions {
            alpn: vec![protocol.as_bytes().to_vec()],
            client_identity: self.identity.clone(),
            ..crypto::TlsOptions::default()
        }
    }
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    /// `localhost` and the port without one.
    pub(crate) host: Option<&'static str>,
    pub(crate) target: String,
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) content: Vec<u8>,
    /// The head of HTTP/2 or 3 as it is, right or wrong, instead of all of the above.
    pub(crate) lines: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Ask {
    pub(crate) fn new(method: &'static str, target: &str) -> Ask {
        Ask { method, target: target.to_owned(), ..Ask::default() }
    }

    pub(crate) fn get(target: &str) -> Ask {
        Ask::new("GET", target)
    }

    pub(crate) fn of(mut self, host: &'static str) -> Ask {
        self.host = Some(host);
        self
    }

    pub(crate) fn authority(&self, port: u16) -> String {
        self.host.map_or_else(|| format!("localhost:{port}"), str::to_owned)
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Ask {
        self.fields.push((name, value.to_owned()));
        self
    }

    pub(crate) fn sending(mut self, bytes: usize) -> Ask {
        self.content = vec![b'x'; bytes];
        self.with("content-length", &bytes.to_string())
    }
}

/// What came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) content: Vec<u8>,
    /// How the stream was reset, if it was.
    pub(crate) reset: String,
}

impl Answer {
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let old = self.fields.insert(text(name).to_ascii_lowercase(), text(value));
        assert!(old.is_none(), "{} came twice", text(name));
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// The answer without what may differ: the date, where else the site is, and the boundary of parts, which is random.
    pub(crate) fn essence(mut self) -> Answer {
        let date = self.fields.remove("date").expect("every response is dated");
        assert!(date.ends_with(" GMT"), "{date}");
        self.fields.remove("alt-svc");
        if let Some((_, boundary)) =
            self.field("content-type").split_once("boundary=").map(|(a, b)| (a, b.to_owned()))
        {
            let content = String::from_utf8(self.content).expect("text").replace(&boundary, "BOUNDARY");
            self.content = content.into_bytes();
            self.fields.insert("content-type".to_owned(), "multipart/byteranges".to_owned());
        }
        self
    }
}
