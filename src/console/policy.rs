//! The security policy of the console, and the cookie that identifies a browser.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use super::page::{SCRIPT, STYLE};
use crate::access::CONSOLE_COOKIE;
use crate::limits;

/// Returns a cookie that browsers send to this host alone, only over TLS and only from its own pages, and hide from
/// scripts. `port` is the port of the server.
pub fn cookie(session: &str, port: u16) -> String {
    let seconds = limits::CONSOLE_SESSION_LIFETIME.as_secs();
    format!("{CONSOLE_COOKIE}{port}={session}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Strict")
}

/// Returns the value of the server's cookie in a header `Cookie`. Returns `None` if the header does not have this
/// cookie.
pub fn from_cookies(header: &str, port: u16) -> Option<&str> {
    header.split(';').find_map(|pair| {
        let (own, value) = pair.trim().strip_prefix(CONSOLE_COOKIE)?.split_once('=')?;
        (own.parse() == Ok(port)).then_some(value)
    })
}

/// Content Security Policy (W3C, level 3). It allows the one style and the one script of the page, by their digests,
/// connections to this server for the events, and images in `data:` URLs; nothing else.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| STANDARD.encode(digest(&SHA256, text.as_bytes()));
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// Returns the headers of every page of the console.
pub fn headers() -> [(&'static str, &'static str); 7] {
    [
        ("cache-control", "no-store"),
        ("content-security-policy", &POLICY),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let from = |header: &'static str| from_cookies(header, 6443);
        assert_eq!(from("a=b; __Host-flotilla-console-6443=x-y_z;c=d"), Some("x-y_z"));
        assert_eq!(from("__Host-flotilla-console-6444=x; __Host-flotilla-console-6443=y"), Some("y"));
        assert_eq!(from("__Host-flotilla-consoles=x; a=__Host-flotilla-console-6443=y"), None);
        assert_eq!(from(""), None);
        let made = cookie("t", 1);
        assert_eq!(from_cookies(made.split(';').next().unwrap(), 1), Some("t"));
    }

    #[test]
    fn only_the_script_of_the_page_runs() {
        let [_, (name, policy), ..] = headers();
        assert_eq!(name, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(policy.matches("'sha256-").count(), 2, "{policy}");
    }
}
