//! stub
/// x
pub fn page(_r: &super::result::RunResult) -> String { String::new() }
