//! What a request asks, and how that is said in it.

use http::{Method, Request, header, request};

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Bytes of content that the client sends.
    pub up: u64,
    /// Bytes of content that it wants back.
    pub down: u64,
    /// Where in the pattern both begin.
    pub offset: u64,
    /// How both are sent.
    pub shape: Shape,
    /// Bytes of a field that only takes up room.
    pub padding: usize,
    /// Whether the client gives up half-way through the answer.
    pub is_cancelled: bool,
}

/// How a request and its response look: a set of properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape(pub u64);

impl Shape {
    /// The request's length is not announced.
    pub const UNKNOWN_UP: Shape = Shape(1);
    /// The response's length is not announced.
    pub const UNKNOWN_DOWN: Shape = Shape(2);
    /// The request has trailers.
    pub const TRAILERS_UP: Shape = Shape(4);
    /// The response has trailers.
    pub const TRAILERS_DOWN: Shape = Shape(8);
    /// Interim responses come first.
    pub const INTERIM: Shape = Shape(16);
    /// Only the head of the response is wanted.
    pub const HEAD: Shape = Shape(32);

    /// How many there are.
    pub(crate) const COUNT: u64 = 64;

    /// Whether it has a property.
    pub const fn has(self, property: Shape) -> bool {
        self.0 & property.0 != 0
    }
}

/// The field that only takes up room.
const PADDING: &str = "x-padding";

impl Ask {
    /// The answer's whole content, from the beginning of the pattern.
    pub fn download(down: u64) -> Ask {
        Ask { up: 0, down, offset: 0, shape: Shape::default(), padding: 0, is_cancelled: false }
    }

    /// Whether the request has content.
    pub(crate) fn has_content(&self) -> bool {
        self.up > 0
    }

    /// Content bytes that arrive at the client.
    pub(crate) fn expected(&self) -> u64 {
        if self.shape.has(Shape::HEAD) { 0 } else { self.down }
    }

    /// The request's head.
    ///
    /// # Errors
    /// Never, as `http` sees it; in words.
    pub(crate) fn to_head(self) -> Result<request::Parts, String> {
        let Ask { up, down, offset, shape, .. } = self;
        let method = match () {
            () if shape.has(Shape::HEAD) => Method::HEAD,
            () if self.has_content() => Method::POST,
            () => Method::GET,
        };
        let uri = format!("https://server.example/{up}/{down}/{offset}/{}", shape.0);
        let mut request = Request::builder().method(method).uri(uri);
        if self.has_content() && !shape.has(Shape::UNKNOWN_UP) {
            request = request.header(header::CONTENT_LENGTH, up);
        }
        if self.padding > 0 {
            request = request.header(PADDING, "p".repeat(self.padding));
        }
        let (parts, ()) = request.body(()).map_err(|error| error.to_string())?.into_parts();
        Ok(parts)
    }

    /// What a path asks.
    pub(crate) fn from_path(path: &[u8]) -> Option<Ask> {
        let mut numbers = core::str::from_utf8(path).ok()?.strip_prefix('/')?.split('/').map(str::parse);
        let mut next = || numbers.next()?.ok();
        let (up, down, offset, shape) = (next()?, next()?, next()?, Shape(next()?));
        Some(Ask { up, down, offset, shape, padding: 0, is_cancelled: false })
    }
}
