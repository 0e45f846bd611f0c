//! Controllers that belong to the API itself: namespaces, garbage collection, service accounts, root certificates.
