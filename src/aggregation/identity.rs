//! Sets the headers that tell aggregated servers which user a request is from. They accept these headers from clients
//! with the certificate of the front proxy.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::access::{User, identifies_user};
use crate::outbound;
use crate::status::ApiResult;
use crate::streams::forwarded;

/// Sets the user's headers, and removes those that the client has sent.
///
/// # Errors
/// 431 if the headers exceed the size limit.
pub fn set(headers: &mut HeaderMap, user: &User) -> ApiResult<()> {
    let claimed: Vec<HeaderName> =
        headers.keys().filter(|name| identifies_user(name.as_str(), None)).cloned().collect();
    for name in claimed {
        headers.remove(name);
    }
    let mut add =
        |name: &str, value: &str| match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => forwarded::add(headers, name, value),
            _ => Ok(()),
        };
    add("x-remote-user", &user.name)?;
    if !user.uid.is_empty() {
        add("x-remote-uid", &user.uid)?;
    }
    for group in &user.groups {
        add("x-remote-group", group)?;
    }
    for (key, values) in user.extra.iter() {
        let name = format!("x-remote-extra-{}", outbound::escape_name(key));
        values.iter().try_for_each(|value| add(&name, value))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_cannot_set_the_headers_of_another_user() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("x-remote-user", "root"), ("x-remote_extra-a", "b"), ("accept", "c")] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let user = User {
            name: "u".into(),
            groups: vec!["g".into(), "h".into()],
            extra: [("example.org/A%b".to_owned(), vec!["1".to_owned(), "2".to_owned()])].into(),
            ..User::default()
        };
        set(&mut headers, &user).unwrap();
        let all = |name: &str| headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!((all("x-remote-user"), all("x-remote-group")), (vec!["u"], vec!["g", "h"]));
        assert_eq!(all("x-remote-extra-example.org%2fa%25b"), ["1", "2"]);
        assert_eq!(headers.len(), 6);
    }
}
