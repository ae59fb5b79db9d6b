//! The user and group that a server changes to once its ports are open and its keys are read.

use clap::Args;
use nix::unistd::{
    Gid, Group, Uid, User, getegid, geteuid, getgid, getuid, initgroups, setgroups, setresgid, setresuid,
};
use std::ffi::CString;
use std::os::unix::fs::lchown;
use std::path::Path;

/// Flags about the user.
#[derive(Args)]
pub(crate) struct UserArgs {
    /// The user to become once ports are open and keys are read, by name or number. For a server that root starts.
    ///
    /// What is opened later belongs to that user: log, ready file, traces, and certificates that are read again.
    #[arg(long, value_name = "USER", help_heading = "Process", hide_short_help = true)]
    user: Option<String>,
    /// The group to become. Default: that of --user.
    #[arg(long, value_name = "GROUP", help_heading = "Process", hide_short_help = true)]
    group: Option<String>,
}

/// What to become.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    /// Without one the user stays.
    user: Option<Uid>,
    group: Gid,
    /// The name whose supplementary groups come along.
    name: Option<CString>,
}

impl UserArgs {
    /// # Errors
    /// One line: there is no such user or group.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.identity().map(drop)
    }

    /// # Errors
    /// As [`UserArgs::check`], or this process may not change to it.
    pub(crate) fn permitted(&self) -> Result<(), String> {
        match self.identity()? {
            Some(identity) => self.permit(&identity),
            None => Ok(()),
        }
    }

    /// Changes to the user and group, for good, in all threads.
    ///
    /// # Errors
    /// As [`UserArgs::permitted`], or the system refuses.
    pub(crate) fn change(&self) -> Result<(), String> {
        let Some(identity) = self.identity()? else { return Ok(()) };
        self.permit(&identity)?;
        if is_now(&identity) {
            return Ok(());
        }
        let Identity { user, group, name } = &identity;
        let refused = |error: nix::Error| format!("cannot change to {}: {error}", self.asked());
        // The C library does each of these in all threads: nptl(7).
        match name {
            Some(name) => initgroups(name, *group).map_err(refused)?,
            None => setgroups(&[*group]).map_err(refused)?,
        }
        setresgid(*group, *group, *group).map_err(refused)?;
        if let Some(user) = user {
            setresuid(*user, *user, *user).map_err(refused)?;
            if !user.is_root() && setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)).is_ok() {
                return Err(format!("the system lets {} become root again", self.asked()));
            }
        }
        Ok(())
    }

    /// Makes a folder, and the files in it, those of the user to become: a process that takes the place of this one reads them, too.
    ///
    /// # Errors
    /// As [`UserArgs::permitted`], or the system refuses.
    pub(crate) fn give(&self, folder: &Path) -> Result<(), String> {
        let Some(identity) = self.identity()?.filter(|identity| !is_now(identity)) else { return Ok(()) };
        let (user, group) = (identity.user.map(Uid::as_raw), Some(identity.group.as_raw()));
        let files = std::fs::read_dir(folder).map(|files| files.flatten().map(|file| file.path()));
        let mut all = files.into_iter().flatten().chain([folder.to_owned()]);
        // A link is given itself, and not what it leads to.
        all.try_for_each(|path| lchown(&path, user, group))
            .map_err(|error| format!("cannot give {} to {}: {error}", folder.display(), self.asked()))
    }

    fn identity(&self) -> Result<Option<Identity>, String> {
        let group = self.group.as_deref().map(find_group).transpose()?;
        let Some(user) = &self.user else {
            return Ok(group.map(|group| Identity { user: None, group, name: None }));
        };
        let number = user.parse().ok().map(Uid::from_raw);
        let found = match number {
            Some(number) => User::from_uid(number),
            None => User::from_name(user),
        };
        match (found.map_err(|error| format!("--user {user}: {error}"))?, number, group) {
            (Some(found), _, group) => Ok(Some(Identity {
                user: Some(found.uid),
                group: group.unwrap_or(found.gid),
                name: CString::new(found.name).ok(),
            })),
            (None, Some(number), Some(group)) => Ok(Some(Identity { user: Some(number), group, name: None })),
            (None, Some(_), None) => {
                Err(format!("--user {user}: no user has this number, so say its group with --group, too"))
            }
            (None, None, _) => {
                Err(format!("--user {user}: there is no such user; make one: useradd -r {user}"))
            }
        }
    }

    fn permit(&self, identity: &Identity) -> Result<(), String> {
        if geteuid().is_root() || is_now(identity) {
            return Ok(());
        }
        let asked = self.asked();
        Err(format!(
            "{asked}: only root can change to another user or group; start it as root, or leave this out"
        ))
    }

    /// As the flags say it.
    fn asked(&self) -> String {
        let flags = [("--user", &self.user), ("--group", &self.group)];
        let flags = flags.iter().filter_map(|(flag, value)| Some(format!("{flag} {}", value.as_ref()?)));
        flags.collect::<Vec<_>>().join(" ")
    }
}

fn find_group(text: &str) -> Result<Gid, String> {
    if let Ok(number) = text.parse() {
        return Ok(Gid::from_raw(number));
    }
    match Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid),
        Ok(None) => Err(format!("--group {text}: there is no such group; make one: groupadd -r {text}")),
        Err(error) => Err(format!("--group {text}: {error}")),
    }
}

/// Whether the process is what it shall become.
fn is_now(identity: &Identity) -> bool {
    let is_user = identity.user.is_none_or(|user| user == getuid() && user == geteuid());
    is_user && identity.group == getgid() && identity.group == getegid()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(user: Option<&str>, group: Option<&str>) -> UserArgs {
        UserArgs { user: user.map(str::to_owned), group: group.map(str::to_owned) }
    }

    #[test]
    fn who_is_asked_for_is_found_or_told() {
        assert_eq!(args(None, None).identity(), Ok(None));
        let root = args(Some("root"), None).identity().unwrap().unwrap();
        assert_eq!((root.user, root.group.as_raw()), (Some(Uid::from_raw(0)), 0));
        assert_eq!(args(Some("0"), None).identity().unwrap().unwrap(), root);
        let numbers = args(Some("54321"), Some("54322")).identity().unwrap().unwrap();
        assert_eq!((numbers.group.as_raw(), numbers.name), (54_322, None));
        for (user, group, told) in [
            (Some("no-such-user"), None, "useradd -r no-such-user"),
            (Some("54321"), None, "say its group with --group"),
            (None, Some("no-such-group"), "groupadd -r no-such-group"),
        ] {
            let what = args(user, group).check().unwrap_err();
            assert!(what.contains(told), "{what}");
        }
    }
}
