//! Reads traces: the text sequences and the documents of all drafts.

use serde_json::Value;
use std::fmt;
use std::path::Path;

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// Milliseconds since the first event.
    pub(crate) time: f64,
    /// Its name without the schema's: `packet_sent`.
    pub(crate) name: String,
    /// Numbers of packets repeat between the paths of a connection; events of paths beside the first name theirs.
    pub(crate) is_of_first_path: bool,
    pub(crate) data: Value,
}

/// The trace of one connection, as one end saw it.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// `client`, `server`, or what the file says.
    pub vantage: String,
    /// What wrote it, as far as the file says.
    pub title: String,
    /// When it began: RFC 3339, if the file says.
    pub began: Option<String>,
    pub(crate) events: Vec<Event>,
    /// What is doubtful about it.
    pub notes: Vec<String>,
}

/// A file that is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Unreadable {}

/// What begins a record of a JSON text sequence. Source: RFC 7464 §2.2.
const RECORD: char = '\u{1e}';

/// Reads the traces in a file: one, or as many as a document has.
///
/// # Errors
/// The file cannot be read, or is no trace.
pub fn read(path: &Path) -> Result<Vec<Trace>, Unreadable> {
    contents(path).and_then(|text| parse(&text)).map_err(|reason| Unreadable::of(path, &reason))
}

impl Unreadable {
    pub(crate) fn of(path: &Path, reason: &str) -> Unreadable {
        Unreadable(format!("{}: {reason}", path.display()))
    }
}

pub(crate) fn contents(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn parse(text: &str) -> Result<Vec<Trace>, String> {
    if text.trim().is_empty() {
        return Err("the file is empty: the connection has not written anything yet".to_owned());
    }
    if let Ok(document) = serde_json::from_str::<Value>(text)
        && let Some(traces) = document.get("traces").and_then(Value::as_array)
    {
        let traces: Vec<Trace> = traces.iter().filter_map(|trace| of_document(&document, trace)).collect();
        return if traces.is_empty() { Err("the document has no traces".to_owned()) } else { Ok(traces) };
    }
    of_sequence(text).map(|trace| vec![trace])
}

/// One document with all events. In older drafts an event is a list, whose columns `event_fields` names.
fn of_document(document: &Value, trace: &Value) -> Option<Trace> {
    let columns: Option<Vec<&str>> = trace
        .get("event_fields")
        .and_then(Value::as_array)
        .map(|fields| fields.iter().filter_map(Value::as_str).collect());
    let listed = trace.get("events")?.as_array()?;
    let mut read = header(document, trace);
    let events: Vec<Option<Event>> = listed.iter().map(|event| of_event(event, columns.as_deref())).collect();
    read.finish(events);
    Some(read)
}

/// A header and a record for each event.
pub(crate) struct Sequence {
    pub(crate) header: Value,
    pub(crate) records: Vec<Value>,
    /// Records that are not whole.
    pub(crate) torn: usize,
}

pub(crate) fn sequence(text: &str) -> Result<Sequence, String> {
    let mut records = text.split([RECORD, '\n']).map(str::trim).filter(|record| !record.is_empty());
    let first = records.next().and_then(|record| serde_json::from_str::<Value>(record).ok());
    let is_header = |header: &Value| {
        ["qlog_version", "file_schema", "qlog_format", "serialization_format"]
            .iter()
            .any(|name| header.get(name).is_some())
    };
    let Some(header) = first.filter(is_header) else {
        return Err("this is no qlog: neither a document with traces nor a sequence with a header".to_owned());
    };
    let (records, torn): (Vec<_>, Vec<_>) =
        records.map(serde_json::from_str::<Value>).partition(Result::is_ok);
    Ok(Sequence { header, records: records.into_iter().flatten().collect(), torn: torn.len() })
}

fn of_sequence(text: &str) -> Result<Trace, String> {
    let Sequence { header: document, records, torn } = sequence(text)?;
    let mut trace = header(&document, document.get("trace").unwrap_or(&Value::Null));
    if torn > 0 {
        let what = if torn == 1 { "a record is".to_owned() } else { format!("{torn} records are") };
        trace.notes.push(format!("{what} not whole: the program may still write, or was killed"));
    }
    trace.finish(records.iter().map(|event| of_event(event, None)).collect());
    Ok(trace)
}

fn header(document: &Value, trace: &Value) -> Trace {
    let text = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let vantage = text(trace, "/vantage_point/type").or_else(|| text(document, "/vantage_point/type"));
    let title = text(document, "/title")
        .or_else(|| text(trace, "/title"))
        .or_else(|| text(trace, "/vantage_point/name"))
        .or_else(|| text(trace, "/common_fields/group_id"));
    Trace {
        vantage: vantage.unwrap_or_else(|| "unknown".to_owned()),
        title: title.unwrap_or_default(),
        began: text(trace, "/common_fields/reference_time/wall_clock_time"),
        ..Trace::default()
    }
}

/// `None` for what is no event.
fn of_event(event: &Value, columns: Option<&[&str]>) -> Option<Event> {
    let field = |name: &str, column: usize| match columns {
        Some(columns) => {
            let column = columns.iter().position(|known| *known == name).unwrap_or(column);
            event.get(column)
        }
        None => event.get(name),
    };
    let time = field("time", 0).or_else(|| field("relative_time", 0))?;
    let time = time.as_f64().or_else(|| time.as_str()?.parse().ok())?;
    let name = field("name", 2).or_else(|| field("event", 2)).or_else(|| field("event_type", 2))?.as_str()?;
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
    let data = field("data", 3).cloned().unwrap_or(Value::Null);
    // What later drafts call recovery_metrics_updated.
    let name = if name == "metrics_updated" { "recovery_metrics_updated" } else { name };
    let is_of_first_path = event.get("tuple").is_none();
    Some(Event { time, name: name.to_owned(), is_of_first_path, data })
}

/// Space and number of a packet, by the type that its header names.
pub(crate) fn packet(data: &Value) -> Option<(String, u64)> {
    let header = data.get("header").unwrap_or(data);
    let number = number(header.get("packet_number")?)?;
    let space = match text(header, "packet_type")?.as_str() {
        "initial" => "initial",
        "handshake" => "handshake",
        _ => "application_data",
    };
    Some((space.to_owned(), number))
}

/// Numbers stand as such, or as text where a draft has them so.
pub(crate) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

pub(crate) fn text(data: &Value, name: &str) -> Option<String> {
    data.get(name).and_then(Value::as_str).map(str::to_owned)
}

impl Trace {
    /// Takes the events, in the order of their times, which begin at zero.
    fn finish(&mut self, events: Vec<Option<Event>>) {
        let all = events.len();
        self.events = events.into_iter().flatten().filter(|event| event.time.is_finite()).collect();
        if self.events.len() < all {
            self.notes.push(format!("{} of {all} records are no events", all - self.events.len()));
        }
        self.events.sort_by(|one, other| one.time.total_cmp(&other.time));
        let began = self.events.first().map_or(0.0, |event| event.time);
        self.events.iter_mut().for_each(|event| event.time -= began);
    }
}
