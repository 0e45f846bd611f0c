//! Who set which field: managedFields and server-side apply.
