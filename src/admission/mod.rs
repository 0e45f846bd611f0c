//! Admission of writes by what clusters define: policies and webhooks.

pub mod conditions;
