//! The text of an error with its causes.

/// Returns the text of an error and of its causes, separated by colons. A cause that the text before it already ends
/// with is left out.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| match cause.to_string() {
        cause if text.ends_with(&cause) => text,
        cause => format!("{text}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Failure {
        #[error("no leader")]
        NoLeader,
        #[error("no leader")]
        Same(#[source] Box<Failure>),
        #[error("cannot begin")]
        Begin(#[source] Box<Failure>),
    }

    #[test]
    fn causes_are_not_repeated() {
        let failure = Failure::Begin(Box::new(Failure::Same(Box::new(Failure::NoLeader))));
        assert_eq!(with_causes(&failure), "cannot begin: no leader");
    }
}
