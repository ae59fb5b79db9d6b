//! Which name was meant.

/// What other servers call it, and what it is here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("host", "names"),
    ("hosts", "names"),
    ("hostname", "names"),
    ("hostnames", "names"),
    ("domain", "names"),
    ("domains", "names"),
    ("server-name", "names"),
    ("server-names", "names"),
    ("location", "path"),
    ("upstream", "to"),
    ("upstreams", "to"),
];

/// The one of `names` that `name` is a misspelling of, or that is called `name` elsewhere, if there is one: it sounds alike, or it is nearly
/// the same letters.
pub fn suggest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    /// Below this two names have not much in common.
    const ALIKE: f64 = 0.8;
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let name = plain(name);
    let names: Vec<&str> = names.into_iter().collect();
    let is_meant = |known: &&str| ELSEWHERE.contains(&(name.as_str(), *known));
    if let Some(known) = names.iter().copied().find(is_meant) {
        return Some(known);
    }
    let closeness = |other: &'n str| (strsim::jaro_winkler(&name, &plain(other)), other);
    let best = names.into_iter().map(closeness).max_by(|one, two| one.0.total_cmp(&two.0));
    best.filter(|(closeness, _)| *closeness >= ALIKE).map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_are_recognised_and_other_words_are_not() {
        let names = ["listen", "access-log", "max-connections", "root", "cert"];
        for (name, meant) in [
            ("lisen", Some("listen")),
            ("Listen", Some("listen")),
            ("access_log", Some("access-log")),
            ("acces-log", Some("access-log")),
            ("max-conections", Some("max-connections")),
            ("certificate", Some("cert")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(suggest(name, names), meant, "{name}");
        }
        let of_site = ["names", "root", "hsts", "route"];
        for name in ["hosts", "host", "server_name", "Domains", "nmes"] {
            assert_eq!(suggest(name, of_site), Some("names"), "{name}");
        }
        assert_eq!(suggest("hsst", of_site), Some("hsts"));
        assert_eq!(suggest("host", ["to", "host"]), Some("host"));
    }
}
