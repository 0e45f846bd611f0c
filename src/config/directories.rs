//! Directories of a server, and files in them.

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

/// Returns the path of the administrator's kubeconfig for a server whose data directory comes from the environment or
/// is the default.
pub fn usual_kubeconfig() -> PathBuf {
    let given = std::env::var_os("FLOTILLA_DATA_DIR").map(PathBuf::from);
    given.unwrap_or_else(default_data_dir).join(ADMIN_KUBECONFIG)
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
