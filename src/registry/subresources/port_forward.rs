//! `portforward`: connections to ports of a pod.

use flotilla_golang::strconv::{self, NumberError};

use super::exec::assigned;
use super::{Connect, Connected, Pending, remote};
use crate::status::{ApiError, ApiResult};
use crate::streams::{Destination, ForwardMode};
use crate::tables::stored_value;

/// Serves GET and POST of a pod's `portforward`.
pub(super) fn connect(request: Connect<'_>) -> Pending<'_, Connected> {
    Box::pin(async move {
        let Connect { registry, target, query, .. } = request;
        let ports = query.all("ports").flat_map(|stated| stated.split(','));
        let ports = ports.map(port).collect::<ApiResult<Vec<String>>>()?;
        let pod = stored_value(&*registry.tables.get(target.served, target.namespace, target.name, None).await?)?;
        let kubelet = remote::kubelet(registry, assigned(&pod, target.name)?, &target.served.resource.name)?;
        let parameters = if ports.is_empty() { Vec::new() } else { vec![("port", ports.join(","))] };
        let path = remote::kubelet_path(&["portForward", target.namespace, target.name], parameters);
        remote::count(registry, target.subresource, kubelet.by_websocket);
        let manner = ForwardMode::Ports { by_websocket: kubelet.by_websocket };
        Ok(Connected::To(Box::new(Destination { peer: kubelet.peer(&registry.kubelets, false), path, manner })))
    })
}

/// Reads a port of the query.
fn port(text: &str) -> ApiResult<String> {
    let wrong = |error: NumberError| ApiError::bad_request(format!("cannot convert to []int32: {error}"));
    let number = strconv::parse_uint(text).map_err(wrong)?;
    if number > u64::from(u16::MAX) {
        return Err(wrong(NumberError::range("ParseUint", text)));
    }
    Ok(number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers_of_16_bits() {
        assert_eq!(port("65535").unwrap(), "65535");
        for (text, why) in [("x", "invalid syntax"), ("-1", "invalid syntax"), ("65536", "value out of range")] {
            let expected = format!("cannot convert to []int32: strconv.ParseUint: parsing \"{text}\": {why}");
            assert_eq!(port(text).unwrap_err().message, expected);
        }
    }
}
