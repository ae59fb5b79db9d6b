//! The field sections of one peer, decoded and judged one after the other.
//!
//! Most lines of a section are those of the section before, and what was found right is right again: the characters of such lines are
//! not looked at, and a request whose section is the same as that of the request before is not judged at all. Rules that depend on
//! other lines are applied to each section that differs.

use super::head::{Judgement, RequestHead, ResponseHead, Trailers};
use super::target::{ExtendedConnect, Malformed};
use super::validate;
use core::ops::Range;
use qpack::{DecodeError, FieldSection, Limits, News, SectionDecoder};

/// Decodes and judges. Memory: that of [`SectionDecoder`].
#[derive(Debug)]
pub(crate) struct SectionReader {
    decoder: SectionDecoder,
    /// Of the section that was accepted last, if it is that of a request.
    judgement: Option<Judgement>,
}

impl SectionReader {
    /// Nothing has been read. All sections have these limits.
    pub(crate) fn new(limits: Limits) -> SectionReader {
        SectionReader { decoder: SectionDecoder::new(limits), judgement: None }
    }

    /// Decodes the next section, which is then to be judged by one of the other methods.
    ///
    /// # Errors
    /// As [`SectionDecoder::decode`].
    #[inline]
    pub(crate) fn decode(&mut self, encoded: &[u8]) -> Result<(), DecodeError> {
        self.decoder.decode(encoded)
    }

    /// The section that was decoded last.
    pub(crate) fn section(&self) -> &FieldSection {
        self.decoder.section()
    }

    /// Judges it as the header section of a request.
    ///
    /// # Errors
    /// It breaks a rule; says which.
    #[inline]
    pub(crate) fn request(&mut self, extended: ExtendedConnect) -> Result<RequestHead<'_>, Malformed> {
        let known = self.judgement.take().filter(|_| self.decoder.news() == News::Nothing);
        let judgement = match known {
            Some(judgement) => judgement,
            None => validate::request(self.decoder.section(), self.fresh(), extended)?,
        };
        self.judgement = Some(judgement);
        self.decoder.accept();
        Ok(RequestHead { section: self.decoder.section(), judgement })
    }

    /// Judges it as the header section of a response, interim or final.
    ///
    /// # Errors
    /// It breaks a rule; says which.
    pub(crate) fn response(&mut self) -> Result<ResponseHead<'_>, Malformed> {
        self.judgement = None;
        let (status, content_length) = validate::response(self.decoder.section(), self.fresh())?;
        self.decoder.accept();
        Ok(ResponseHead { section: self.decoder.section(), status, content_length })
    }

    /// Judges it as a trailer section.
    ///
    /// # Errors
    /// It breaks a rule; says which.
    pub(crate) fn trailers(&mut self) -> Result<Trailers<'_>, Malformed> {
        self.judgement = None;
        validate::trailers(self.decoder.section(), self.fresh())?;
        self.decoder.accept();
        Ok(Trailers { section: self.decoder.section() })
    }

    /// The lines whose characters are still to be judged.
    fn fresh(&self) -> Range<usize> {
        match self.decoder.news() {
            News::Nothing => 0..0,
            News::Lines(lines) => lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    const LIMITS: Limits = Limits { max_field_section_size: 1 << 20, max_lines: 100 };

    type Lines = Vec<(&'static str, &'static str)>;

    /// What is made of a section.
    #[derive(Clone, Copy, Debug)]
    enum Kind {
        Request,
        Response,
        Trailers,
    }

    /// What a reader says of a section, in words.
    fn read(reader: &mut SectionReader, kind: Kind, lines: &Lines) -> Result<String, Malformed> {
        let mut encoded = Vec::new();
        qpack::encode(lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut encoded);
        reader.decode(&encoded).unwrap();
        Ok(match kind {
            Kind::Request => {
                let head = reader.request(ExtendedConnect::Announced)?;
                let target = (head.method(), head.scheme(), head.authority(), head.path(), head.protocol());
                let fields: Vec<_> = head.fields().collect();
                format!("{target:?} {fields:?} {:?} {:?}", head.content_length(), head.priority())
            }
            Kind::Response => {
                let head = reader.response()?;
                let fields: Vec<_> = head.fields().collect();
                format!("{} {:?} {fields:?}", head.status(), head.content_length())
            }
            Kind::Trailers => format!("{:?}", reader.trailers()?.fields().collect::<Vec<_>>()),
        })
    }

    /// Lines of requests, right and wrong: few, so that sections have much in common.
    fn lines() -> impl Strategy<Value = Lines> {
        const PSEUDO: [&[(&str, &str)]; 7] = [
            &[(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")],
            &[(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/b")],
            &[(":method", "GET"), (":scheme", "https"), (":path", "/")],
            &[(":method", "GET"), (":scheme", "x"), (":authority", "a"), (":path", "no path")],
            &[(":method", "CONNECT"), (":authority", "a")],
            &[(":status", "200")],
            &[],
        ];
        const REGULAR: [(&str, &str); 10] = [
            ("host", "a"),
            ("host", "b c"),
            ("te", "trailers"),
            ("content-length", "7"),
            ("x-a", "1"),
            ("x-b", "a\nb"),
            ("x b", "1"),
            ("priority", "u=1"),
            ("connection", "close"),
            (":path", "/late"),
        ];
        (select(&PSEUDO[..]), vec(select(&REGULAR[..]), 0..4))
            .prop_map(|(pseudo, regular)| pseudo.iter().copied().chain(regular).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40_000))]

        /// Deleted, a line that is wrong could pass because it was in the section before, or a section be taken for that one.
        #[test]
        fn a_section_after_others_means_what_it_means_alone(
            sections in vec((prop_oneof![4 => Just(Kind::Request), 1 => Just(Kind::Response), 1 => Just(Kind::Trailers)], lines(), 1..3_usize), 1..8)
        ) {
            let mut reader = SectionReader::new(LIMITS);
            for (kind, lines, times) in &sections {
                for _ in 0..*times {
                    let alone = read(&mut SectionReader::new(LIMITS), *kind, lines);
                    prop_assert_eq!(read(&mut reader, *kind, lines), alone);
                }
            }
        }
    }

    /// Deleted, a section could be taken for that of a request because it is the one that was judged last, which was a response's.
    #[test]
    fn what_was_judged_as_a_response_is_no_request() {
        let mut reader = SectionReader::new(LIMITS);
        let request = vec![(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")];
        let response = vec![(":status", "200")];
        read(&mut reader, Kind::Request, &request).unwrap();
        read(&mut reader, Kind::Response, &response).unwrap();
        read(&mut reader, Kind::Request, &response).unwrap_err();
    }

    /// Deleted, everything could be judged each time, and no other test would tell.
    #[test]
    fn only_what_is_new_is_judged() {
        let head = |path: &'static str| {
            vec![(":method", "GET"), (":scheme", "https"), (":path", path), ("host", "a"), ("x-a", "1")]
        };
        let mut reader = SectionReader::new(LIMITS);
        for (path, fresh, known) in [("/", 0..5, false), ("/", 0..0, true), ("/b", 2..3, true)] {
            let mut encoded = Vec::new();
            let lines = head(path);
            qpack::encode(
                lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())),
                &mut encoded,
            );
            reader.decode(&encoded).unwrap();
            assert_eq!((reader.fresh(), reader.judgement.is_some()), (fresh, known), "{path}");
            reader.request(ExtendedConnect::Unknown).unwrap();
        }
    }
}
