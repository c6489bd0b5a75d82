//! What must be equal for numbers to be comparable, as facts.

use crate::data::{Facts, LoadIdentity};
use crate::probe::{gpu_facts, host_facts, is_local};
use crate::triton::{Endpoint, ModelSignature};

/// Facts of the hardware behind a server, and of this client.
///
/// Hardware is only known where the server is this machine; elsewhere the environment's name
/// stands for it.
pub fn hardware(host: &str) -> Facts {
    let own = host_facts();
    let mut facts = Facts::default();
    if is_local(host) {
        facts = own.clone();
        let gpus = gpu_facts();
        facts.0.extend(gpus.0);
    } else {
        for field in ["kernel", "host"] {
            if let Some(value) = own.get(field) {
                facts.set(field, value);
            }
        }
    }
    facts.set("client.host_class", host_class(&own));
    facts
}

/// The class of a client machine: CPU model and cores, never its name.
fn host_class(facts: &Facts) -> String {
    format!(
        "{}, {} cores",
        facts.get("cpu.model").unwrap_or("unknown CPU"),
        facts.get("cpu.cores").unwrap_or("?")
    )
}

/// The input signature of a model: names, datatypes, shapes.
pub fn signature_facts(signature: &ModelSignature) -> Facts {
    let mut facts = Facts::default();
    for tensor in signature.inputs.iter().filter(|tensor| !tensor.optional) {
        facts.set(
            format!("signature.input.{}", tensor.name),
            format!("{} {:?}", tensor.datatype, tensor.dims),
        );
    }
    for tensor in &signature.outputs {
        facts.set(
            format!("signature.output.{}", tensor.name),
            format!("{} {:?}", tensor.datatype, tensor.dims),
        );
    }
    facts
}

/// Everything together: hardware, signature and load.
pub fn environment(hardware: &Facts, signature: &ModelSignature, load: &LoadIdentity) -> Facts {
    let mut facts = hardware.clone();
    facts.0.extend(signature_facts(signature).0);
    facts.0.extend(load.facts().0);
    facts
}

/// The name of the lock: the GPU where it is known, else the server's address, one for all names
/// of this machine.
pub fn lock_name(hardware: &Facts, endpoint: &Endpoint) -> String {
    match hardware.get("gpu.uuid") {
        Some(uuid) => uuid.to_owned(),
        None if is_local(endpoint.host()) => format!("localhost:{}", endpoint.port()),
        None => endpoint.address(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ServerSpec;

    #[test]
    fn every_name_of_this_machine_is_one_lock() {
        let name = |url: &str| {
            let spec = ServerSpec {
                url: url.to_owned(),
                ..ServerSpec::default()
            };
            let endpoint = Endpoint::new(&spec).expect("an address");
            lock_name(&Facts::default(), &endpoint)
        };
        for own in ["localhost:8001", "127.0.0.1:8001", "[::1]:8001"] {
            assert_eq!(name(own), "localhost:8001", "{own}");
        }
        assert_eq!(name("192.0.2.1:8001"), "192.0.2.1:8001");
        let mut hardware = Facts::default();
        hardware.set("gpu.uuid", "GPU-1");
        let endpoint = Endpoint::new(&ServerSpec {
            url: "localhost:8001".to_owned(),
            ..ServerSpec::default()
        })
        .expect("an address");
        assert_eq!(lock_name(&hardware, &endpoint), "GPU-1");
    }
}
