//! Code as words and signs, and how to walk over what is bracketed.

use crate::sources::is_word;

/// The words and signs of a code; `::`, `->` and `=>` are one sign each, lifetimes are left out.
pub(crate) fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let words = |text: &str| text.find(|character| !is_word(character)).unwrap_or(text.len());
        let len = match first {
            _ if is_word(first) => words(rest),
            '\'' => 1 + words(&rest[1..]),
            _ if ["::", "->", "=>"].iter().any(|sign| rest.starts_with(sign)) => 2,
            _ => first.len_utf8(),
        };
        if first != '\'' {
            tokens.push(&rest[..len]);
        }
        rest = rest[len..].trim_start();
    }
    tokens
}

/// Behind the bracket that closes the one at `open`; `open` itself where none stands.
pub(crate) fn behind(tokens: &[&str], open: usize) -> usize {
    let closing = match tokens.get(open) {
        Some(&"(") => ")",
        Some(&"{") => "}",
        Some(&"[") => "]",
        Some(&"<") => ">",
        _ => return open,
    };
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if *token == tokens[open] {
            depth += 1;
        } else if *token == closing {
            depth -= 1;
            if depth == 0 {
                return at + 1;
            }
        }
    }
    tokens.len()
}

/// The parts of what commas separate, brackets of all kinds unopened.
pub(crate) fn split<'t, 'a>(tokens: &'t [&'a str]) -> Vec<&'t [&'a str]> {
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    while at < tokens.len() {
        if tokens[at] == "," {
            parts.push(&tokens[begin..at]);
            begin = at + 1;
        }
        at = behind(tokens, at).max(at + 1);
    }
    parts.push(&tokens[begin..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The path of the type that begins here, as words: references and pointers are looked through, and what boxes or may lack
/// a value counts as the value.
pub(crate) fn type_path<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let skipped = tokens.iter().take_while(|token| matches!(**token, "&" | "mut" | "dyn" | "impl")).count();
    let tokens = &tokens[skipped..];
    let mut path = Vec::new();
    let mut at = 0;
    while let Some(word) = tokens.get(at).filter(|token| token.starts_with(is_word)) {
        path.push(*word);
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    match path.last() {
        Some(&("Box" | "Arc" | "Rc" | "Option" | "Result")) if tokens.get(at) == Some(&"<") => {
            type_path(&tokens[at + 1..])
        }
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_walked_over_and_commas_inside_do_not_split() {
        let tokens = tokens("fn f<'a, T>(a: &'a mut b::C<D, E>, f: F) -> Option<Box<G>> { x }");
        let open = tokens.iter().position(|token| *token == "(").expect("opens");
        let close = behind(&tokens, open);
        assert_eq!(tokens[close], "->");
        let parameters = split(&tokens[open + 1..close - 1]);
        assert_eq!(parameters.len(), 2);
        assert_eq!(type_path(&parameters[0][2..]), ["b", "C"]);
        assert_eq!(type_path(&tokens[close + 1..]), ["G"]);
    }
}
