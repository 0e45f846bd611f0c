//! Directories of a server, and files in them.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::Config;

/// Name of the administrator's kubeconfig in the data directory.
const ADMIN_KUBECONFIG: &str = "admin.kubeconfig";

impl Config {
    /// Returns the directory of the certificates and keys that members share.
    pub fn pki_dir(&self) -> PathBuf {
        self.pki_dir.clone().unwrap_or_else(|| self.own_pki_dir())
    }

    /// Returns the directory of the certificates and keys that are this server's own.
    pub fn own_pki_dir(&self) -> PathBuf {
        self.data_dir.join("pki")
    }

    /// Returns the path of the administrator's kubeconfig.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.data_dir.join(ADMIN_KUBECONFIG)
    }
}

/// Returns the path of the kubeconfig for commands that name none: that of the administrator in the data directory of
/// the environment; or else the file that kubectl reads according to `KUBECONFIG`; or else that of the administrator in
/// the default data directory.
pub fn usual_kubeconfig() -> PathBuf {
    let data_dir = std::env::var_os("FLOTILLA_DATA_DIR").map(PathBuf::from);
    kubeconfig_of(data_dir, std::env::var_os("KUBECONFIG").as_deref())
}

/// Returns the usual kubeconfig for these values of `FLOTILLA_DATA_DIR` and `KUBECONFIG`.
fn kubeconfig_of(data_dir: Option<PathBuf>, list: Option<&OsStr>) -> PathBuf {
    let listed = list.filter(|_| data_dir.is_none()).and_then(one_of);
    listed.unwrap_or_else(|| data_dir.unwrap_or_else(default_data_dir).join(ADMIN_KUBECONFIG))
}

/// Returns the first file of a list that exists, or else the first. Unlike kubectl, which merges the files, commands
/// read one of them. `None` if the list names no file.
fn one_of(list: &OsStr) -> Option<PathBuf> {
    let files = || std::env::split_paths(list).filter(|file| !file.as_os_str().is_empty());
    files().find(|file| file.exists()).or_else(|| files().next())
}

/// Returns `$XDG_DATA_HOME/flotilla`, or `~/.local/share/flotilla` (XDG Base Directory Specification), or a directory
/// below the working directory if neither is set.
pub fn default_data_dir() -> PathBuf {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .unwrap_or_default()
        .join("flotilla")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_environment_names_the_kubeconfig_of_commands() {
        let of = |data_dir: Option<&str>, list: Option<&str>| {
            kubeconfig_of(data_dir.map(PathBuf::from), list.map(OsStr::new)).display().to_string()
        };
        let usual = default_data_dir().join(ADMIN_KUBECONFIG).display().to_string();
        assert_eq!((of(None, None), of(None, Some("")), of(None, Some(":"))), (usual.clone(), usual.clone(), usual));
        assert_eq!(of(None, Some("/none/config")), "/none/config");
        assert_eq!(of(Some("/d"), Some("/none/config")), "/d/admin.kubeconfig", "the directory is Flotilla's own");
    }

    #[test]
    fn of_several_kubeconfigs_the_first_that_exists_counts() {
        let dir = Scratch::new();
        let (none, other, some) = (dir.join("none"), dir.join("other"), dir.join("some"));
        std::fs::write(&some, "").unwrap();
        let of = |files: &[&PathBuf]| one_of(&std::env::join_paths(files).unwrap());
        assert_eq!(of(&[&none, &some]), Some(some.clone()));
        assert_eq!(of(&[&some, &none]), Some(some));
        assert_eq!(of(&[&none, &other]), Some(none));
        assert_eq!(of(&[&PathBuf::new(), &other]), Some(other));
    }
}
