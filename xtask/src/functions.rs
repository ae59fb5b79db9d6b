//! A Rust file as its functions: enough to find tests, with no parser of the language.
//!
//! Comments, texts and characters are blanked out first, so that braces and words left over are code. One pass then follows
//! modules, attributes and functions. Macro calls such as `proptest!` are read like code: a test in one is a test.

/// A function and what stands around it.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The inline modules of its file that it is in, outermost first.
    pub(crate) modules: Vec<String>,
    /// Its attributes without `#[` and `]`, and `cfg` attributes of its modules.
    pub(crate) attributes: Vec<String>,
    /// From its brace to the closing one, without comments and texts.
    pub(crate) body: String,
    pub(crate) line: usize,
}

/// A module that is in another file: `mod name;`.
#[derive(Debug, Default)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    /// The inline modules of its file that it is in, outermost first.
    pub(crate) modules: Vec<String>,
    pub(crate) attributes: Vec<String>,
}

/// What one file declares.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) functions: Vec<Function>,
    pub(crate) declarations: Vec<Declaration>,
}

/// An opened brace: of an inline module, of a function (by its index), or another one.
enum Open {
    Module { name: String, attributes: Vec<String> },
    Function(usize, usize),
    Other,
}

/// Reads a file.
pub(crate) fn read(text: &str) -> Source {
    let mask = blank(text);
    let mut reader = Reader { text, mask: &mask, at: 0, attributes: Vec::new(), open: Vec::new() };
    let mut source = Source::default();
    while let Some(rest) = reader.rest() {
        reader.step(rest, &mut source);
    }
    source
}

struct Reader<'a> {
    text: &'a str,
    mask: &'a str,
    at: usize,
    attributes: Vec<String>,
    open: Vec<Open>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> Option<&'a str> {
        self.mask.get(self.at..).filter(|rest| !rest.is_empty())
    }

    fn step(&mut self, rest: &str, source: &mut Source) {
        let word = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or("");
        match word {
            "" => {}
            "mod" => return self.module(rest, source),
            "fn" => return self.function(rest, source),
            other => {
                self.at += other.len();
                return;
            }
        }
        if rest.starts_with("#[") {
            let end = closing(rest, '[', ']');
            let attribute = self.text.get(self.at + 2..self.at + end).unwrap_or("");
            self.attributes.push(attribute.split_whitespace().collect::<Vec<_>>().join(" "));
            self.at += end + 1;
            return;
        }
        let first = rest.chars().next().unwrap_or(' ');
        match first {
            '{' => self.open.push(Open::Other),
            '}' => self.close(source),
            _ => {}
        }
        if matches!(first, '{' | '}' | ';') {
            self.attributes.clear();
        }
        self.at += first.len_utf8();
    }

    /// `mod name;` or `mod name {`.
    fn module(&mut self, rest: &str, source: &mut Source) {
        let after = rest.find(['{', ';']).unwrap_or(rest.len());
        let name = rest.get(3..after).unwrap_or("").trim().to_owned();
        let attributes = core::mem::take(&mut self.attributes);
        if rest.get(after..).is_some_and(|end| end.starts_with('{')) {
            self.open.push(Open::Module { name, attributes });
        } else {
            source.declarations.push(Declaration { name, modules: self.modules(), attributes });
        }
        self.at += (after + 1).min(rest.len());
    }

    /// `fn name(…) … {`, or a signature that ends in `;`, or the type `fn(…)`.
    fn function(&mut self, rest: &str, source: &mut Source) {
        let name: String = rest
            .get(2..)
            .unwrap_or("")
            .trim_start()
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        self.at += 2;
        if name.is_empty() {
            return;
        }
        let mut attributes = core::mem::take(&mut self.attributes);
        for open in &self.open {
            if let Open::Module { attributes: around, .. } = open {
                attributes.extend(around.iter().filter(|attribute| attribute.starts_with("cfg(")).cloned());
            }
        }
        // A brace or semicolon within parentheses or brackets belongs to a type: `[u8; 4]`.
        let mut depth = 0;
        for (offset, letter) in rest.char_indices() {
            match letter {
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                ';' if depth == 0 => return,
                '{' if depth == 0 => {
                    let line = self.text.get(..self.at).map_or(0, |before| before.matches('\n').count() + 1);
                    let modules = self.modules();
                    source.functions.push(Function { name, modules, attributes, body: String::new(), line });
                    let start = self.at - 2 + offset;
                    self.open.push(Open::Function(source.functions.len() - 1, start));
                    self.at = start + 1;
                    return;
                }
                _ => {}
            }
        }
    }

    fn close(&mut self, source: &mut Source) {
        if let Some(Open::Function(index, start)) = self.open.pop()
            && let Some(function) = source.functions.get_mut(index)
        {
            function.body = self.mask.get(start..=self.at).unwrap_or("").to_owned();
        }
    }

    fn modules(&self) -> Vec<String> {
        let names = self.open.iter().filter_map(|open| match open {
            Open::Module { name, .. } => Some(name.clone()),
            Open::Function(..) | Open::Other => None,
        });
        names.collect()
    }
}

/// Where the first bracket closes.
fn closing(rest: &str, open: char, close: char) -> usize {
    let mut depth = 0;
    for (offset, letter) in rest.char_indices() {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth -= 1;
            if depth == 0 {
                return offset;
            }
        }
    }
    rest.len()
}

/// The same text with spaces for what is in comments, texts and characters. Lines and byte positions stay.
pub(crate) fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let before = out.chars().next_back().unwrap_or(' ');
        let length = literal(rest, before).unwrap_or(0);
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (inside, after) = rest.split_at(length.min(rest.len()));
        out.extend(inside.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        rest = after;
    }
    out
}

/// The length of the comment or literal that begins here, if one does.
fn literal(rest: &str, before: char) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |end| end + 2));
    }
    if rest.starts_with('"') {
        return Some(quoted(rest));
    }
    if let Some(after) = rest.strip_prefix('\'') {
        return character(after);
    }
    let in_word = before.is_alphanumeric() || before == '_';
    let raw = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r')).filter(|_| !in_word)?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    if raw[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let from = rest.len() - raw.len() + hashes + 1;
        return Some(rest[from..].find(&end).map_or(rest.len(), |found| from + found + end.len()));
    }
    None
}

/// The length of a character behind its first mark, both marks counted; `None` for a lifetime.
fn character(after: &str) -> Option<usize> {
    let mut letters = after.char_indices();
    let (_, first) = letters.next()?;
    if first == '\\' {
        letters.next()?;
        return Some(1 + letters.find(|(_, letter)| *letter == '\'')?.0 + 1);
    }
    let (offset, second) = letters.next()?;
    (second == '\'').then_some(1 + offset + 1)
}

/// The length of a text in quotation marks.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (offset, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return offset + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_texts_and_characters_become_spaces() {
        let blanked = blank("a // fn x() {\nb \"}\\\"{\" c '{' d '\\'' e 'f: &'static r#\"{\"# g /* { */ h");
        assert_eq!(blanked.split_whitespace().collect::<String>(), "abcde'f:&'staticgh");
        assert_eq!(blanked.lines().count(), 2);
    }

    #[test]
    fn functions_are_found_with_modules_attributes_and_bodies() {
        let source = read(
            "#[cfg(test)]\nmod a {\n mod b;\n proptest! { #[test] #[ignore = \"slow\"] fn c(x in 0..[1; 4].len()) { d(); } }\n}\nfn e(f: fn(u8) -> u8) -> [u8; 4] { g() }\ntrait T { fn h(); }\n",
        );
        let [inner, outer] = source.functions.as_slice() else { panic!("{:?}", source.functions) };
        assert_eq!(
            (inner.name.as_str(), inner.modules.as_slice(), inner.line),
            ("c", &["a".to_owned()][..], 4)
        );
        assert_eq!(inner.attributes, ["test", "ignore = \"slow\"", "cfg(test)"]);
        assert_eq!(inner.body, "{ d(); }");
        assert_eq!((outer.name.as_str(), outer.body.as_str(), outer.attributes.len()), ("e", "{ g() }", 0));
        let [declared] = source.declarations.as_slice() else { panic!("{:?}", source.declarations) };
        assert_eq!((declared.name.as_str(), declared.modules.as_slice()), ("b", &["a".to_owned()][..]));
    }
}
