//! Techniques that are chosen when tercel is built: link-time optimisation, and optimisation by a profile.
//!
//! A build says by `--version` how it was made and from which sources. Those that lie beside the running program take part in the
//! study if their sources are the same; why others do not is told, with the command that builds them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench::method::Method;

use super::techniques::SIZE;
use crate::downloads::DownloadSeries;

/// A way to build, and where its result lies.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// As a build names itself.
    profile: &'static str,
    /// Below target/.
    place: &'static str,
    command: &'static str,
}

const USUAL: Way = Way { profile: "dist", place: "dist/tercel", command: "make dist" };
const GUIDED: Way = Way { profile: "dist+pgo", place: "pgo/tercel", command: "cargo xtask pgo" };
const EXPERIMENTAL: Way =
    Way { profile: "dist+experiments", place: "experiments/dist/tercel", command: "make experiments" };
const UNLINKED: Way = Way { profile: "release", place: "release/tercel", command: "make build" };

/// A technique: the build that has it, and one without it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BuildTechnique {
    pub(super) name: &'static str,
    pub(super) published: Option<&'static str>,
    with: Way,
    without: Way,
}

/// All that are compared.
pub(super) const BUILD_TECHNIQUES: [BuildTechnique; 2] = [
    BuildTechnique {
        name: "without profile-guided optimisation",
        published: Some("15 %, with link-time optimisation"),
        with: GUIDED,
        without: USUAL,
    },
    BuildTechnique {
        name: "without link-time optimisation, in 16 units of code instead of one",
        published: None,
        with: USUAL,
        without: UNLINKED,
    },
];

/// What a program says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Build {
    profile: String,
    sources: String,
}

/// How a program is asked; `None` if it does not say.
type Ask = dyn Fn(&Path) -> Option<Build>;

/// The builds that can be compared.
#[derive(Clone, Debug, Default)]
pub(super) struct Builds {
    /// How the running program was built.
    base: String,
    /// The others: profile and program.
    others: Vec<(&'static str, PathBuf)>,
    /// A program whose connections can do without techniques.
    pub(super) experimental: Option<PathBuf>,
    /// Why others are missing.
    pub(super) notes: Vec<String>,
}

impl Builds {
    /// Looks for builds beside `program`.
    pub(super) fn beside(program: &Path) -> Builds {
        Builds::among(program, &ask)
    }

    fn among(program: &Path, ask: &Ask) -> Builds {
        let Some(own) = ask(program).filter(|build| !build.sources.is_empty()) else {
            let note = format!(
                "Profile-guided and link-time optimisation were not measured: this program was built without optimisation. Use {}.",
                USUAL.command
            );
            return Builds { notes: vec![note], ..Builds::default() };
        };
        let mut found = Builds { base: own.profile.clone(), ..Builds::default() };
        for way in [USUAL, GUIDED, UNLINKED].into_iter().filter(|way| way.profile != own.profile) {
            match find(program, way, (&own, ask)) {
                Ok(file) => found.others.push((way.profile, file)),
                Err(note) => found.notes.push(note),
            }
        }
        if own.profile == EXPERIMENTAL.profile {
            found.experimental = Some(program.to_owned());
            return found;
        }
        match find(program, EXPERIMENTAL, (&own, ask)) {
            Ok(file) => found.experimental = Some(file),
            Err(note) => found.notes.push(note),
        }
        found
    }

    /// A lane for each other build.
    pub(super) fn lanes(&self) -> impl Iterator<Item = DownloadSeries> {
        self.others.iter().map(|(profile, file)| DownloadSeries {
            program: Some(file.clone()),
            ..DownloadSeries::new(&name(profile), Method::Gso, &SIZE)
        })
    }

    /// The lanes with and without a technique, of those that were measured; `everything` is the running program's.
    pub(super) fn pair<'a>(
        &self,
        technique: &BuildTechnique,
        everything: &'a DownloadSeries,
        lanes: &'a [DownloadSeries],
    ) -> Option<[&'a DownloadSeries; 2]> {
        let of = |way: Way| {
            let name = name(way.profile);
            let is_it = || lanes.iter().find(|lane| lane.name == name);
            if way.profile == self.base { Some(everything) } else { is_it() }
        };
        Some([of(technique.with)?, of(technique.without)?])
    }
}

fn name(profile: &str) -> String {
    format!("built as {profile}")
}

/// The program that was built this way from the same sources, or why there is none.
fn find(program: &Path, way: Way, (own, ask): (&Build, &Ask)) -> Result<PathBuf, String> {
    // Beside this program only: what lies below the working directory may be another user's.
    let folder = program.parent().and_then(Path::parent).unwrap_or(Path::new(""));
    let file = folder.join(way.place);
    // A report is published, so it names no path of the machine.
    let shown = Path::new(folder.file_name().unwrap_or_default()).join(way.place);
    let (shown, Way { profile, command, .. }) = (shown.display(), way);
    if !file.is_file() {
        return Err(format!(
            "A program built as {profile} was not measured: there is no {shown}. {command} makes it."
        ));
    }
    match ask(&file) {
        Some(build) if build.profile == profile && build.sources == own.sources => Ok(file),
        Some(build) if build.profile == profile => Err(format!(
            "A program built as {profile} was not measured: {shown} was built from other sources ({} instead of {}). {command} makes \
             it anew.",
            build.sources, own.sources
        )),
        _ => Err(format!(
            "A program built as {profile} was not measured: {shown} does not say that it is one. {command} makes it anew."
        )),
    }
}

/// Asks a program how it was built; `None` if it does not say.
fn ask(program: &Path) -> Option<Build> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    read(&String::from_utf8_lossy(&output.stdout))
}

fn read(said: &str) -> Option<Build> {
    let line = |name: &str| said.lines().find_map(|line| line.strip_prefix(name));
    Some(Build { profile: line("profile ")?.to_owned(), sources: line("sources ")?.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, two builds of different sources could be compared, and a change of the code taken for one of the compiler.
    #[test]
    fn only_builds_of_the_same_sources_are_compared() {
        let said = "tercel 0.1.0\nprofile dist+pgo\nsources 0123456789abcdef\n";
        let own = read(said).unwrap();
        assert_eq!((own.profile.as_str(), own.sources.as_str()), ("dist+pgo", "0123456789abcdef"));
        assert_eq!(read("tercel 0.1.0\n"), None);
        assert_eq!(read("tercel 0.1.0\nprofile debug\nsources \n").unwrap().sources, "");

        let folder = bench::folder::Folder::make().unwrap();
        let file = |place: &str| folder.path().join(place);
        for place in ["dist", "pgo", "release", "debug", "experiments/dist"] {
            std::fs::create_dir_all(file(place)).unwrap();
            std::fs::write(file(place).join("tercel"), "").unwrap();
        }
        let ask = |program: &Path| {
            let said = match program.parent()?.file_name()?.to_str()? {
                "dist" if program.ends_with("experiments/dist/tercel") => {
                    "profile dist+experiments\nsources abc\n"
                }
                "dist" => "profile dist\nsources abc\n",
                "pgo" => "profile dist+pgo\nsources abc\n",
                "release" => "profile release\nsources abd\n",
                _ => "profile debug\nsources \n",
            };
            read(said)
        };
        let builds = Builds::among(&file("dist/tercel"), &ask);
        assert_eq!(builds.others.iter().map(|(profile, _)| *profile).collect::<Vec<_>>(), ["dist+pgo"]);
        assert_eq!(builds.experimental, Some(file("experiments/dist/tercel")));
        let own = Builds::among(&file("experiments/dist/tercel"), &ask);
        assert_eq!(own.experimental, Some(file("experiments/dist/tercel")));
        assert!(builds.notes.len() == 1 && builds.notes[0].contains("abd instead of abc"), "{builds:?}");
        let whole = folder.path().to_str().unwrap();
        assert!(!builds.notes[0].contains(whole), "a path of this machine: {}", builds.notes[0]);

        let everything = DownloadSeries::new("everything", Method::Gso, &SIZE);
        let lanes: Vec<DownloadSeries> = builds.lanes().collect();
        let pairs = BUILD_TECHNIQUES.map(|technique| builds.pair(&technique, &everything, &lanes));
        let names = pairs[0].map(|pair| pair.map(|lane| lane.name.as_str()));
        assert_eq!(names, Some(["built as dist+pgo", "everything"]));
        assert!(pairs[1].is_none());
        assert!(Builds::among(&file("debug/tercel"), &ask).notes[0].contains("without optimisation"));
    }
}
