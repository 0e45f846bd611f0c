use flotilla_proto::value;

use super::*;

#[derive(Default)]
struct Pool {
    addresses: Vec<IpAddr>,
    ports: Vec<i64>,
    both: bool,
}

impl Allocations for Pool {
    fn families(&self) -> &[&'static str] {
        if self.both { &["IPv4", "IPv6"] } else { &["IPv4"] }
    }

    fn take_address(&mut self, family: &str, wanted: Option<IpAddr>) -> Result<IpAddr, Refusal> {
        let range = if family == "IPv4" { "10.96.0.0/24" } else { "fd00::/120" };
        let range = addresses::Block::parse_sloppy(range).ok_or(Refusal::Full)?;
        let next = match range.first() {
            IpAddr::V4(v4) => IpAddr::V4((u32::from(v4) + 1 + self.addresses.len() as u32).into()),
            IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) + 1 + self.addresses.len() as u128).into()),
        };
        let address = wanted.unwrap_or(next);
        if !range.contains(address) {
            return Err(Refusal::AddressOutside);
        }
        if self.addresses.contains(&address) {
            return Err(Refusal::AddressTaken);
        }
        self.addresses.push(address);
        Ok(address)
    }

    fn take_port(&mut self, wanted: Option<i64>) -> Result<i64, Refusal> {
        let port = wanted.unwrap_or(30000 + self.ports.len() as i64);
        if !(30000..=32767).contains(&port) {
            return Err(Refusal::PortOutside(30000, 32767));
        }
        if self.ports.contains(&port) {
            return Err(Refusal::PortTaken);
        }
        self.ports.push(port);
        Ok(port)
    }
}

fn service(spec: Value) -> Value {
    value!({"metadata": {"name": "s"}, "spec": spec})
}

fn created(pool: &mut Pool, spec: Value) -> Result<Value, String> {
    let mut object = service(spec);
    allocate_create(&mut object, pool).map_err(|error| error.message)?;
    Ok(object.at(&["spec"]).clone())
}

#[test]
fn services_get_the_addresses_and_ports_that_they_need() {
    let mut pool = Pool::default();
    let spec = created(&mut pool, value!({"type": "ClusterIP"}));
    let expected = value!({"type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"],
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"});
    assert_eq!(spec, Ok(expected));
    let taken = created(&mut pool, value!({"type": "ClusterIP", "clusterIP": "10.96.0.1"}));
    let text = "Service \"s\" is invalid: spec.clusterIPs: Invalid value: [\"10.96.0.1\"]: failed to allocate IP 10.96.0.1: provided IP is already allocated";
    assert_eq!(taken, Err(text.to_owned()));
    let headless = created(&mut pool, value!({"type": "ClusterIP", "clusterIP": "None"})).unwrap_or_default();
    assert_eq!(headless.at(&["ipFamilies"]), &value!(["IPv4", "IPv6"]));
    assert_eq!(headless.str_at(&["ipFamilyPolicy"]), "RequireDualStack");
    assert_eq!(created(&mut pool, value!({"type": "ExternalName"})), Ok(value!({"type": "ExternalName"})));
}

#[test]
fn ports_of_two_protocols_share_a_node_port() {
    let mut pool = Pool::default();
    let ports =
        value!([{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}, {"port": 80, "nodePort": 30500}]);
    let spec = created(&mut pool, value!({"type": "NodePort", "ports": ports})).unwrap_or_default();
    let given: Vec<_> = spec.list_at(&["ports"]).iter().map(|port| port.int_at(&["nodePort"])).collect();
    assert_eq!(given, [Some(30000), Some(30000), Some(30500)]);
    let twice = created(&mut pool, value!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 30500}]}));
    assert!(
        twice.is_err_and(|text| text.ends_with("nodePort: Invalid value: 30500: provided port is already allocated"))
    );
    let outside = created(&mut pool, value!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 99999}]}));
    assert!(outside.is_err_and(|text| text.ends_with("The range of valid ports is 30000-32767")));
}

#[test]
fn updates_keep_and_release_addresses_and_ports() {
    let mut pool = Pool::default();
    let old = service(created(&mut pool, value!({"type": "NodePort", "ports": [{"port": 80}]})).unwrap_or_default());
    let mut same = service(value!({"type": "NodePort", "ports": [{"port": 81}]}));
    let released = allocate_update(&mut same, &old, &mut pool);
    assert_eq!(released, Ok(Held::default()));
    assert_eq!(same.str_at(&["spec", "clusterIP"]), "10.96.0.1");
    assert_eq!(same.list_at(&["spec", "ports"])[0].int_at(&["nodePort"]), Some(30000));
    let mut named = service(value!({"type": "ExternalName"}));
    let released = allocate_update(&mut named, &old, &mut pool).unwrap_or_default();
    assert_eq!(released, Held { addresses: vec![IpAddr::from([10, 96, 0, 1])], ports: vec![30000] });
    assert_eq!(held(&old), released);
}

#[test]
fn a_second_family_is_added_and_removed() {
    let mut pool = Pool { both: true, ..Pool::default() };
    let old = service(created(&mut pool, value!({"type": "ClusterIP"})).unwrap_or_default());
    let mut dual = old.clone();
    dual.set_at(&["spec", "ipFamilyPolicy"], "PreferDualStack");
    assert_eq!(allocate_update(&mut dual, &old, &mut pool), Ok(Held::default()));
    assert_eq!(dual.list_at(&["spec", "clusterIPs"]).len(), 2);
    let mut single = dual.clone();
    single.set_at(&["spec", "ipFamilyPolicy"], "SingleStack");
    let released = allocate_update(&mut single, &dual, &mut pool).unwrap_or_default();
    assert_eq!(released.addresses.len(), 1);
    assert_eq!(single.list_at(&["spec", "ipFamilies"]), [Value::from("IPv4")]);
}
