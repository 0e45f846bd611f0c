//! Who asks, and whether they may: authentication and authorization.
