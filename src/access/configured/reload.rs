//! Files that are read regularly, to notice when they change.

use std::path::{Path, PathBuf};

use crate::limits;
use crate::pki::read_credential;
use crate::tasks;

/// A file whose content was read.
#[derive(Debug)]
pub struct FollowedFile {
    path: PathBuf,
    text: String,
}

impl FollowedFile {
    /// Takes a file and its content.
    pub fn new(path: &Path, text: String) -> Self {
        Self { path: path.to_owned(), text }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the content has changed, and returns the new content.
    pub async fn change(&mut self) -> String {
        let mut is_lost = false;
        loop {
            tokio::time::sleep(limits::CONFIGURATION_CHECK_INTERVAL).await;
            let path = self.path.clone();
            let read = tasks::blocking(move || read_credential(&path)).await;
            match read {
                Ok(Ok(text)) if text != self.text => {
                    self.text.clone_from(&text);
                    return text;
                }
                Ok(Ok(_)) => is_lost = false,
                Ok(Err(error)) if !is_lost => {
                    tracing::error!(path = %self.path.display(), %error, "cannot read the configuration again");
                    is_lost = true;
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }
}
