//! Where the URLs of a run come from.

use client::error::GetError;
use client::target::Target;
use std::io::Read as _;
use std::path::Path;

/// All that were given, on the command line and in a file.
///
/// # Errors
/// A URL is malformed or of another server than the first, the file cannot be read, or there is none at all.
pub(super) fn targets(given: &[String], file: Option<&Path>) -> Result<Vec<Target>, GetError> {
    let text = file.map(read).transpose()?.unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let all = given.iter().map(String::as_str).chain(lines);
    let targets = all.map(Target::parse_any).collect::<Result<Vec<Target>, GetError>>()?;
    let first = targets.first().ok_or_else(|| GetError::Usage("there is no URL to ask".into()))?;
    match targets.iter().find(|target| !target.same_server(first)) {
        Some(other) => Err(GetError::Usage(format!(
            "{other} is at another server than {first}: one run asks one server"
        ))),
        None => Ok(targets),
    }
}

fn read(path: &Path) -> Result<String, GetError> {
    let mut text = String::new();
    let outcome = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(|_| ()),
        false => std::fs::read_to_string(path).map(|read| text = read),
    };
    match outcome {
        Ok(()) => Ok(text),
        Err(error) => Err(GetError::Usage(format!("--urls {}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_of_urls_is_read_and_its_mistakes_are_told() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "# some\n\nhttps://h:1/a\n  https://h:1/b").unwrap();
        let given = ["https://h:1/c".to_owned()];
        let paths =
            |targets: Vec<Target>| targets.iter().map(|target| target.path().to_owned()).collect::<Vec<_>>();
        assert_eq!(paths(targets(&given, Some(file.path())).unwrap()), ["/c", "/a", "/b"]);
        let other = ["http://h:1/c".to_owned()];
        assert!(targets(&other, Some(file.path())).unwrap_err().to_string().contains("another server"));
        assert!(targets(&[], None).is_err());
        assert_eq!(targets(&[], Some(Path::new("/nonexistent"))).unwrap_err().exit_code(), 2);
    }
}
