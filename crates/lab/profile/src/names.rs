//! Names of functions as people know them: `transport::connection::transmit::send_train`.
//!
//! An inlined function has no module in the line tables, but its file tells it. Type parameters are left out: they make a name
//! of three words a paragraph.

/// A name without type parameters, and without what the compiler added.
pub(crate) fn cleaned(name: &str) -> String {
    let name = name.strip_suffix("{{vtable.shim}}").unwrap_or(name);
    let mut cleaned = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        cleaned.push_str(before);
        let Some(end) = closing(from) else {
            rest = from;
            break;
        };
        let inner = from.get(1..end).unwrap_or("");
        // `<Type as Trait>::method` is the type's; other brackets at the beginning of a path name a type too.
        if cleaned.is_empty() || cleaned.ends_with(' ') {
            let of_type = inner.split(" as ").next().unwrap_or(inner);
            cleaned.push_str(of_type.split('<').next().unwrap_or(of_type).trim_start_matches(['&', '*']));
        }
        rest = from.get(end + 1..).unwrap_or("");
    }
    cleaned.push_str(rest);
    let joined = cleaned.replace("::::", "::").replace("{{closure}}", "{closure}");
    without_hash(joined.trim_matches(':')).to_owned()
}

/// Where the bracket that begins a text ends; arrows are no brackets.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut before) = (0_u32, ' ');
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        before = letter;
    }
    None
}

/// Older names end with `::h` and sixteen digits.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((before, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            before
        }
        _ => name,
    }
}

/// A function's name with the module that its file tells, if the name has none.
pub(crate) fn placed(name: &str, file: Option<&str>) -> String {
    let name = cleaned(name);
    // A closure's name says only what it is in.
    let is_bare = !name.contains("::") || name.starts_with('{');
    match file.and_then(module) {
        Some(module) if is_bare => format!("{module}::{name}"),
        _ => name,
    }
}

/// The module of a source file: a crate of ours, one from a registry, or the standard library's.
pub(crate) fn module(file: &str) -> Option<String> {
    let (head, within) = file.rsplit_once("/src/")?;
    let within = within.strip_suffix(".rs")?;
    let name = head.rsplit('/').next()?;
    // A registry's folder is called `aes-0.9.1`.
    let name = match name.rsplit_once('-') {
        Some((before, version)) if version.starts_with(|letter: char| letter.is_ascii_digit()) => before,
        _ => name,
    };
    let mut module = name.replace('-', "_");
    for part in within.split('/').filter(|part| !matches!(*part, "lib" | "main" | "mod")) {
        module.push_str("::");
        module.push_str(part);
    }
    Some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_parameters() {
        for (name, short) in [
            ("worker::worker::Worker<P,A>::turn", "worker::worker::Worker::turn"),
            ("<udp::sender::Sender as datapath::Tx>::flush", "udp::sender::Sender::flush"),
            (
                "transport::connection::transmit::<impl transport::connection::Connection>::transmit",
                "transport::connection::transmit::transmit",
            ),
            (
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
                "core::ops::function::FnOnce::call_once",
            ),
            ("seal<fn(&[u8]) -> alloc::vec::Vec<u8>>", "seal"),
            ("base::slab::get::h0123456789abcdef", "base::slab::get"),
            ("<alloc::vec::Vec<T> as core::ops::Drop>::drop", "alloc::vec::Vec::drop"),
            ("aws_lc_0_34_0_gcm_enc", "aws_lc_0_34_0_gcm_enc"),
            ("a<b", "a<b"),
        ] {
            assert_eq!(cleaned(name), short);
        }
    }

    #[test]
    fn files_tell_modules() {
        for (file, name) in [
            (
                "/home/me/tercel/crates/transport/src/connection/transmit.rs",
                Some("transport::connection::transmit"),
            ),
            ("/home/me/tercel/crates/udp/src/sys/mod.rs", Some("udp::sys")),
            ("/home/user/.cargo/registry/src/somewhere/aes-0.9.1/src/x86/ni.rs", Some("aes::x86::ni")),
            (
                "/home/user/.cargo/registry/src/somewhere/aws-lc-rs-1.19.0/src/aead.rs",
                Some("aws_lc_rs::aead"),
            ),
            ("/rustc/59807616/library/core/src/option.rs", Some("core::option")),
            (
                "/rustc/59807616/library/core/src/../../stdarch/crates/core_arch/src/x86/sse2.rs",
                Some("core_arch::x86::sse2"),
            ),
            ("crates/wire/src/lib.rs", Some("wire")),
            ("build/main.c", None),
        ] {
            assert_eq!(module(file).as_deref(), name, "{file}");
        }
        assert_eq!(placed("seal<T>", Some("crates/crypto/src/packet.rs")), "crypto::packet::seal");
        assert_eq!(placed("{closure#0}", Some("crates/udp/src/sender.rs")), "udp::sender::{closure#0}");
        assert_eq!(placed("a::b", Some("crates/udp/src/sender.rs")), "a::b");
    }
}
