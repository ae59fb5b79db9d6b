//! Where a download is put: `-o FILE`, `-o FOLDER/`, `-o -`, or a name taken from the URL.
//!
//! A name from a URL is foreign text: it can name no folder, no hidden file and nothing longer than a file name,
//! so that a download never lands where the user did not look.

use crate::error::GetError;
use crate::tally::Check;
use crate::target::Target;
use percent_encoding::percent_decode_str;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// For URLs that end in a slash.
const UNNAMED: &str = "index.html";
/// File names have 255 bytes, and ours get a suffix while they are incomplete.
const MAX_NAME: usize = 255 - ".part.state.new".len();

/// Where the bytes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The standard output.
    Stdout,
    /// A regular file, complete or not there: see [`crate::part`].
    File(PathBuf),
    /// Something else that exists, such as `/dev/null` or a FIFO: written as the bytes come.
    Device(PathBuf),
    /// Nowhere: the bytes are counted, and perhaps compared.
    Nowhere(Check),
}

impl Output {
    /// Whether its reader may pause.
    pub fn is_sequential(&self) -> bool {
        matches!(self, Output::Stdout | Output::Device(_))
    }
}

/// The outputs of `targets`, one each, in their order; `option` is the value of `-o`.
pub fn plan(option: Option<&str>, targets: &[Target]) -> Result<Vec<Output>, GetError> {
    let mut outputs: Vec<Output> = Vec::with_capacity(targets.len());
    for target in targets {
        let output = choose(option, target)?;
        if let Output::File(path) = &output
            && outputs.contains(&output)
        {
            let path = path.display();
            let what = format!(
                "two URLs would both be written to {path}: get them one by one, each with its own -o"
            );
            return Err(GetError::Usage(what));
        }
        outputs.push(output);
    }
    Ok(outputs)
}

fn choose(option: Option<&str>, target: &Target) -> Result<Output, GetError> {
    let Some(option) = option else { return Ok(Output::File(name_of(target).into())) };
    if option == "-" {
        return Ok(Output::Stdout);
    }
    if option.is_empty() {
        return Err(GetError::Usage(
            "-o is empty: give a file, a folder, or - for the standard output".into(),
        ));
    }
    let path = Path::new(option);
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(Output::File(path.join(name_of(target)))),
        Ok(found) if found.is_file() => Ok(Output::File(path.to_owned())),
        Ok(_) => Ok(Output::Device(path.to_owned())),
        Err(_) if option.ends_with('/') => Err(GetError::Usage(format!(
            "the folder {option} does not exist: create it or choose another with -o"
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Output::File(path.to_owned())),
        Err(error) => Err(GetError::Write(path.to_owned(), error)),
    }
}

/// A file name from the last segment of the path.
fn name_of(target: &Target) -> OsString {
    let mut name: Vec<u8> = percent_decode_str(target.last_segment()).collect();
    for byte in &mut name {
        if byte.is_ascii_control() || *byte == b'/' {
            *byte = b'_';
        }
    }
    if name.first() == Some(&b'.') {
        // Neither `..` nor a file that `ls` does not show.
        name.splice(..1, *b"_");
    }
    shorten(&mut name);
    if name.is_empty() { UNNAMED.into() } else { OsString::from_vec(name) }
}

/// Cuts a long name before its extension, and not within a character.
fn shorten(name: &mut Vec<u8>) {
    if name.len() <= MAX_NAME {
        return;
    }
    let dot = name.iter().rposition(|byte| *byte == b'.').filter(|dot| name.len() - dot <= 16);
    let extension = dot.map_or(Vec::new(), |dot| name.split_off(dot));
    name.truncate(MAX_NAME - extension.len());
    let valid = match std::str::from_utf8(name) {
        // Cut within the last character; other invalid text stays as it is.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => name.len(),
    };
    name.truncate(valid);
    name.extend_from_slice(&extension);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        Target::parse(&format!("https://example.org{path}")).unwrap()
    }

    #[test]
    fn names_from_urls_are_only_names() {
        let table = [
            ("/a/file.txt", "file.txt"),
            ("/a/file.txt?v=1/2#x", "file.txt"),
            ("/a%20b%C3%A9", "a b\u{e9}"),
            ("/", "index.html"),
            ("", "index.html"),
            ("/folder/", "index.html"),
            ("/..%2f..%2fetc%2fpasswd", "_._.._etc_passwd"),
            ("/a/.bashrc", "_bashrc"),
            ("/x%2f..", "x_.."),
            ("/%2e%2e%2f", "_._"),
            ("/a%00b%0ac", "a_b_c"),
            ("/-rf", "-rf"),
        ];
        for (path, name) in table {
            assert_eq!(name_of(&target(path)), name, "{path}");
        }
        let long = name_of(&target(&format!("/{}%C3%A9{}.tar.gz", "x".repeat(236), "y".repeat(100))));
        assert!(long.len() <= MAX_NAME && long.to_str().unwrap().ends_with("x.gz"), "{long:?}");
    }

    #[test]
    fn files_folders_pipes_and_devices() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let plan_one =
            |option: Option<&str>| plan(option, &[target("/a/name")]).map(|mut outputs| outputs.remove(0));
        assert_eq!(plan_one(None).unwrap(), Output::File("name".into()));
        assert_eq!(plan_one(Some("-")).unwrap(), Output::Stdout);
        assert_eq!(plan_one(Some(path)).unwrap(), Output::File(folder.path().join("name")));
        assert_eq!(
            plan_one(Some(&format!("{path}/other"))).unwrap(),
            Output::File(folder.path().join("other"))
        );
        assert_eq!(plan_one(Some("/dev/null")).unwrap(), Output::Device("/dev/null".into()));
        for wrong in ["", &format!("{path}/absent/")] {
            assert_eq!(plan_one(Some(wrong)).unwrap_err().exit_code(), 2, "{wrong}");
        }
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert_eq!(plan_one(Some(&format!("{path}/file/x"))).unwrap_err().exit_code(), 23);
    }

    #[test]
    fn two_urls_do_not_overwrite_each_other() {
        let twins = [target("/a/x"), target("/b/x")];
        assert_eq!(plan(None, &twins).unwrap_err().exit_code(), 2);
        assert_eq!(plan(Some("some-file"), &twins).unwrap_err().exit_code(), 2);
        assert_eq!(plan(Some("-"), &twins).unwrap().len(), 2);
        assert_eq!(plan(None, &[target("/a/x"), target("/b/y")]).unwrap().len(), 2);
    }
}
