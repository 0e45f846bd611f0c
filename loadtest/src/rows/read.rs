//! Rows that read.

use super::{Context, Numbers};
use crate::connection::Call;
use crate::objects;
use crate::operation::Operation;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn get_with(context: &Context, number: usize, query: &'static str) -> Box<dyn Operation> {
    let (path, pods) = (objects::pods(&context.namespace), context.pods);
    let mut numbers = Numbers::of_client(number);
    Box::new(move || Call::get(format!("{path}/{}{query}", objects::pod_name(numbers.below(pods)))))
}

pub fn get(context: &Context, number: usize) -> Box<dyn Operation> {
    get_with(context, number, "")
}

pub fn get_any(context: &Context, number: usize) -> Box<dyn Operation> {
    get_with(context, number, "?resourceVersion=0")
}

pub fn get_missing(context: &Context, number: usize) -> Box<dyn Operation> {
    let call = Call::get(format!("{}/{}-{number}", objects::pods(&context.namespace), objects::MISSING));
    Box::new(move || call.clone())
}

fn list_with(context: &Context, query: &str, accept: &'static str) -> Box<dyn Operation> {
    let call = Call::get(format!("{}{query}", objects::pods(&context.namespace))).accepting(accept);
    Box::new(move || call.clone())
}

pub fn list(context: &Context, _number: usize) -> Box<dyn Operation> {
    list_with(context, "", "application/json")
}

pub fn list_protobuf(context: &Context, _number: usize) -> Box<dyn Operation> {
    list_with(context, "", PROTOBUF)
}

pub fn list_metadata(context: &Context, _number: usize) -> Box<dyn Operation> {
    list_with(context, "", METADATA)
}

pub fn list_table(context: &Context, _number: usize) -> Box<dyn Operation> {
    list_with(context, "?limit=500", TABLE)
}

pub fn select_nothing(context: &Context, _number: usize) -> Box<dyn Operation> {
    list_with(context, "?labelSelector=app%3Dnone", "application/json")
}

pub fn select_indexed(context: &Context, _number: usize) -> Box<dyn Operation> {
    list_with(context, "?fieldSelector=spec.nodeName%3Dnone", "application/json")
}

pub fn discovery(_context: &Context, _number: usize) -> Box<dyn Operation> {
    let call = Call::get("/apis").accepting(DISCOVERY);
    Box::new(move || call.clone())
}
