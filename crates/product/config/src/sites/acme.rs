//! Certificates that the server orders by itself, for the names of sites.

use super::{Builder, Ordered};
use crate::fault::Span;
use crate::read::{Item, Table, Value};
use ::acme::{Authority, Challenge, ExternalAccount, KeyKind, LETS_ENCRYPT, Order};
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use server::sites::HostName;
use std::path::PathBuf;

/// Most names of one certificate: what Let's Encrypt permits.
const MOST_NAMES: usize = 100;
/// A key of an account elsewhere is not longer, in bytes.
const LONGEST_KEY: u64 = 4_096;

/// What the whole file says of such certificates, and what came of it.
#[derive(Default)]
pub(super) struct OfFile {
    table: Option<Table>,
}

impl OfFile {
    pub(super) fn of(table: &Table) -> OfFile {
        OfFile { table: table.table("acme").cloned() }
    }
}

/// Notes an order for the site in `table`, if it is to have one.
pub(super) fn order(builder: &mut Builder<'_>, table: &Table, names: &[HostName]) {
    let of_site = table.get("acme");
    let whole = builder.acme.table.clone();
    let span = match (of_site, &whole) {
        (Some(Item { value: Value::Switch(false), .. }), _) | (None, None) => return,
        (None, Some(_)) if table.get("certificate").is_some() => return,
        (Some(item), _) => item.span.clone(),
        (None, Some(_)) => table.place("names").unwrap_or_else(|| table.span.clone()),
    };
    if let Some(certificate) = table.place("certificate") {
        let what =
            "the site has a certificate in files and orders one: leave \"acme\" or \"certificate\" out";
        return builder.note(certificate, what);
    }
    let Some(certified) = certified(builder, (names, of_site.is_some()), &span) else { return };
    let own = of_site.and_then(|item| if let Value::Table(own) = &item.value { Some(own) } else { None });
    let tables: Vec<&Table> = own.into_iter().chain(&whole).collect();
    let found = Found { tables: &tables };
    if !found.is_on("terms-agreed") {
        let place = found.place("terms-agreed").unwrap_or(span);
        let what = "certificates are ordered from an authority whose terms of service you agree to: read them, and write terms-agreed = true";
        return builder.note(place, what);
    }
    let before = builder.faults.len();
    let authority = authority(builder, &found);
    let challenge = match found.text("challenge") {
        Some(("http-01", _)) => Challenge::Http01,
        _ => Challenge::TlsAlpn01,
    };
    let key = match found.text("key") {
        Some(("ecdsa-p384", _)) => KeyKind::EcdsaP384,
        Some(("rsa-2048", _)) => KeyKind::Rsa2048,
        _ => KeyKind::EcdsaP256,
    };
    let profile = found.text("profile").map(|(profile, _)| profile.to_owned());
    if builder.faults.len() == before {
        let order = Order { names: certified, authority, challenge, key, profile };
        let names = names.iter().map(HostName::server_name).collect();
        builder.settings.orders.push(Ordered { names, order, span });
    }
}

/// The names that an authority is asked to certify; `None` if it cannot be asked.
fn certified(
    builder: &mut Builder<'_>,
    (names, is_asked): (&[HostName], bool),
    span: &Span,
) -> Option<Vec<String>> {
    let mut certified = Vec::new();
    for name in names {
        match name {
            HostName::Exact(_) if name.server_name().is_some() => certified.extend(name.server_name()),
            HostName::Any => {}
            HostName::Exact(_) | HostName::Below(_) => {
                let what = format!(
                    "acme proves no name such as \"{name}\": give it a site of its own, with a certificate in files or acme = false"
                );
                builder.note(span.clone(), what);
                return None;
            }
        }
    }
    if certified.len() > MOST_NAMES {
        builder
            .note(span.clone(), format!("a certificate has at most {MOST_NAMES} names: make several sites"));
        return None;
    }
    if certified.is_empty() {
        // The site of all other hosts has no name to certify.
        if is_asked {
            builder.note(span.clone(), "a certificate is for names, and this site has none but \"*\"");
        }
        return None;
    }
    Some(certified)
}

fn authority(builder: &mut Builder<'_>, found: &Found<'_>) -> Authority {
    let mut directory = LETS_ENCRYPT.to_owned();
    if let Some((text, span)) = found.text("directory") {
        let url = text.parse::<http::Uri>().ok();
        let is_https = url.is_some_and(|url| url.scheme_str() == Some("https") && url.host().is_some());
        if !is_https {
            builder.note(span, format!("\"{text}\" is no directory: write its URL, https://HOST/PATH"));
        }
        text.clone_into(&mut directory);
    }
    let mut contact = Vec::new();
    for (text, span) in found.list("contact") {
        let address = text.strip_prefix("mailto:").unwrap_or(text);
        let is_address =
            address.split_once('@').is_some_and(|(who, host)| !who.is_empty() && !host.is_empty());
        if !is_address || !address.bytes().all(|byte| byte.is_ascii_graphic() && !b",?<>".contains(&byte)) {
            builder.note(span, format!("\"{text}\" is no address for email: write name@example.org"));
        }
        contact.push(address.to_owned());
    }
    let roots = found.text("tls-ca").map(|(text, span)| {
        let path = builder.place.join(text);
        if let Err(error) = std::fs::metadata(&path) {
            builder.note(span, format!("cannot read the authorities in {}: {error}", path.display()));
        }
        path
    });
    let external = external(builder, found);
    Authority { directory, contact, roots, external }
}

fn external(builder: &mut Builder<'_>, found: &Found<'_>) -> Option<ExternalAccount> {
    let table = found.tables.iter().find_map(|table| table.table("external-account"))?;
    let ((id, _), (file, span)) = (table.text("id")?, table.text("key-file")?);
    match key_in(&builder.place.join(file)) {
        Ok(key) => Some(ExternalAccount { id: id.to_owned(), key }),
        Err(what) => {
            builder.note(span, what);
            None
        }
    }
}

/// A key as authorities hand it out: base64url.
fn key_in(path: &PathBuf) -> Result<Vec<u8>, String> {
    let cannot = |why: &str| format!("cannot use the key in {}: {why}", path.display());
    let text = match std::fs::metadata(path) {
        Ok(file) if file.len() > LONGEST_KEY => Err(cannot("it is longer than 4,096 bytes")),
        Ok(_) => std::fs::read_to_string(path).map_err(|error| cannot(&error.to_string())),
        Err(error) => Err(cannot(&error.to_string())),
    }?;
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let key = GeneralPurpose::new(&URL_SAFE, config).decode(text.trim());
    match key {
        Ok(key) if !key.is_empty() => Ok(key),
        _ => Err(cannot("it is no key in base64url, as the authority shows it")),
    }
}

/// What a site says, and what the file says where it says nothing.
struct Found<'a> {
    tables: &'a [&'a Table],
}

impl<'a> Found<'a> {
    fn item(&self, name: &str) -> Option<&'a Item> {
        self.tables.iter().find_map(|table| table.get(name))
    }

    fn place(&self, name: &str) -> Option<Span> {
        self.tables.iter().find_map(|table| table.place(name))
    }

    fn text(&self, name: &str) -> Option<(&'a str, Span)> {
        self.item(name)?.texts().next()
    }

    fn list(&self, name: &str) -> impl Iterator<Item = (&'a str, Span)> {
        self.item(name).into_iter().flat_map(Item::texts)
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(self.item(name).map(|item| &item.value), Some(Value::Switch(true)))
    }
}
