//! Reading kubeconfigs (Kubernetes documentation, "Organizing Cluster Access Using kubeconfig Files").

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use super::{PkiError, read_credential};

/// The reason why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// It, or a file that it names, cannot be read.
    #[error("the kubeconfig cannot be read")]
    Read(#[source] PkiError),
    /// The same, for a kubeconfig that a command reads.
    #[error("the kubeconfig cannot be read; --kubeconfig names another")]
    ReadByCommand(#[source] PkiError),
    /// It is not valid YAML.
    #[error("the kubeconfig {path} is no YAML")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: yaml::Error,
    },
    /// Something in it is missing or malformed.
    #[error("the kubeconfig {path} has no usable {what}")]
    Lacks {
        /// The file.
        path: PathBuf,
        /// The missing part.
        what: String,
    },
}

/// A kubeconfig that was read.
#[derive(Debug)]
pub struct KubeconfigFile<'a> {
    path: &'a Path,
    root: Value,
}

/// The current context of a kubeconfig: it names a cluster and a user.
#[derive(Debug)]
pub struct CurrentContext<'a> {
    file: &'a KubeconfigFile<'a>,
    value: &'a Value,
}

impl<'a> KubeconfigFile<'a> {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is not valid YAML, or is not a kubeconfig.
    pub fn read(path: &'a Path) -> Result<Self, KubeconfigError> {
        let text = read_credential(path).map_err(KubeconfigError::Read)?;
        let parsed = yaml::parse(text.as_bytes());
        let root = parsed.map_err(|source| KubeconfigError::Yaml { path: path.to_owned(), source })?.value;
        let file = Self { path, root };
        let is_or_misses = |field: &str, own: &str| ["", own].contains(&file.root.str_at(&[field]));
        let is_one = file.root.is_null() || file.root.as_object().is_some();
        if !is_one || !is_or_misses("kind", "Config") || !is_or_misses("apiVersion", "v1") {
            return Err(file.lacks("kind: it must be \"Config\" of \"v1\""));
        }
        Ok(file)
    }

    /// Returns the error that something is missing.
    pub fn lacks(&self, what: &str) -> KubeconfigError {
        KubeconfigError::Lacks { path: self.path.to_owned(), what: what.to_owned() }
    }

    /// Returns whether the file names a current context.
    pub fn names_context(&self) -> bool {
        !self.root.str_at(&["current-context"]).is_empty()
    }

    /// Returns the current context.
    ///
    /// # Errors
    /// If no context has its name.
    pub fn current_context(&self) -> Result<CurrentContext<'_>, KubeconfigError> {
        let value = self.named("contexts", "context", self.root.str_at(&["current-context"]))?;
        Ok(CurrentContext { file: self, value })
    }

    /// Returns the user entries: each has a name and a user.
    pub fn users(&self) -> &[Value] {
        self.root.list_at(&["users"])
    }

    /// Returns the value of a name in a list of named values.
    fn named(&self, list: &str, kind: &str, name: &str) -> Result<&Value, KubeconfigError> {
        let found = entry(self.root.list_at(&[list]), name).and_then(|entry| entry.get(kind));
        found.ok_or_else(|| self.lacks(&format!("{kind} {name:?}")))
    }

    /// Returns the inline bytes of `NAME-data`. Returns `None` if there are none.
    ///
    /// # Errors
    /// When they are not base64.
    pub fn data(&self, of: &Value, name: &str) -> Result<Option<Vec<u8>>, KubeconfigError> {
        match of.str_at(&[&format!("{name}-data")]) {
            "" => Ok(None),
            data => STANDARD.decode(data).map(Some).map_err(|_| self.lacks(name)),
        }
    }

    /// Returns the path of the file that a field names, relative to the kubeconfig. Returns `None` if the field names
    /// none.
    pub fn file(&self, of: &Value, name: &str) -> Option<PathBuf> {
        let named = Some(of.str_at(&[name])).filter(|named| !named.is_empty())?;
        Some(self.path.parent().unwrap_or(Path::new("")).join(named))
    }

    /// Returns the text of a field: inline as `NAME-data`, or from the file that the field names. Returns `None` if
    /// there is neither.
    ///
    /// # Errors
    /// When it is not base64, or the file cannot be read.
    pub fn pem(&self, of: &Value, name: &str) -> Result<Option<Vec<u8>>, KubeconfigError> {
        if let Some(data) = self.data(of, name)? {
            return Ok(Some(data));
        }
        let Some(path) = self.file(of, name) else { return Ok(None) };
        read_credential(&path).map(|text| Some(text.into_bytes())).map_err(KubeconfigError::Read)
    }
}

impl<'a> CurrentContext<'a> {
    /// Returns the cluster.
    ///
    /// # Errors
    /// If no cluster has its name.
    pub fn cluster(&self) -> Result<&'a Value, KubeconfigError> {
        self.file.named("clusters", "cluster", self.value.str_at(&["cluster"]))
    }

    /// Returns the name of the user; empty if the context names none.
    pub fn user_name(&self) -> &'a str {
        self.value.str_at(&["user"])
    }

    /// Returns the entry of the user. `None` if the context names no user.
    ///
    /// # Errors
    /// If no user has its name.
    pub fn user_entry(&self) -> Result<Option<&'a Value>, KubeconfigError> {
        let name = self.user_name();
        match entry(self.file.users(), name) {
            None if !name.is_empty() => Err(self.file.lacks(&format!("user {name:?}"))),
            found => Ok(found),
        }
    }

    /// Returns the user.
    ///
    /// # Errors
    /// If no user has its name.
    pub fn user(&self) -> Result<&'a Value, KubeconfigError> {
        self.file.named("users", "user", self.user_name())
    }
}

/// Returns the entry with a name.
fn entry<'v>(entries: &'v [Value], name: &str) -> Option<&'v Value> {
    entries.iter().find(|entry| entry.str_at(&["name"]) == name)
}
