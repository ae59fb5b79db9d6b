//! The fields of a service's response, and the date beside them.

use crate::date::DateText;
use crate::low::{FieldLines, KeptFields};
use http::header::{self, HeaderMap, HeaderValue};

/// What the application says, and the date unless it says that too. The date is not put into the map: that costs more than to compare
/// and encode it.
pub struct ServiceFields {
    pub(crate) map: HeaderMap,
    pub(crate) date: Option<DateText>,
}

/// What is kept of them.
#[derive(Debug, Default)]
pub struct KeptServiceFields {
    map: KeptFields,
    date: Option<DateText>,
}

impl FieldLines for ServiceFields {
    type Kept = KeptServiceFields;

    const REPEATS: bool = true;

    fn is(&self, kept: &KeptServiceFields) -> bool {
        self.date == kept.date && self.map.is(&kept.map)
    }

    fn keep(self, kept: &mut KeptServiceFields) {
        kept.date = self.date;
        self.map.keep(&mut kept.map);
    }

    fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let date = self.date.as_ref().map(|date| (&b"date"[..], &date[..]));
        self.map.lines().chain(date)
    }

    fn into_map(self) -> Result<HeaderMap, ServiceFields> {
        let ServiceFields { mut map, date } = self;
        let date = date.and_then(|date| HeaderValue::from_bytes(&date).ok());
        date.into_iter().for_each(|date| _ = map.append(header::DATE, date));
        Ok(map)
    }
}
