use std::net::{IpAddr, ToSocketAddrs};

use crate::data::Facts;

/// Facts of this machine: CPU model and cores, kernel, host name.
pub fn host_facts() -> Facts {
    let mut facts = Facts::default();
    if let Some(model) = cpu_model() {
        facts.set("cpu.model", model);
    }
    if let Ok(cores) = std::thread::available_parallelism() {
        facts.set("cpu.cores", cores.to_string());
    }
    let names = rustix::system::uname();
    facts.set("kernel", names.release().to_string_lossy());
    facts.set("host", names.nodename().to_string_lossy());
    facts
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    parse_cpu_model(&text)
}

/// The model name in `/proc/cpuinfo`; Arm kernels name implementer and part instead.
fn parse_cpu_model(text: &str) -> Option<String> {
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    };
    field("model name").or_else(|| {
        let implementer = field("CPU implementer")?;
        let part = field("CPU part")?;
        Some(format!("arm {implementer} {part}"))
    })
}

/// Memory that can be had without swapping, bytes; none where the system does not say.
pub fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    parse_memory_available(&text)
}

fn parse_memory_available(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Whether a server address is this machine, so that this machine's hardware is the server's.
pub fn is_local(host: &str) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return address.is_loopback() || address.is_unspecified();
    }
    let own = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    if host == own {
        return true;
    }
    (host, 0)
        .to_socket_addrs()
        .is_ok_and(|mut addresses| addresses.all(|address| address.ip().is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_x86_and_arm_names() {
        let x86 = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\n";
        assert_eq!(parse_cpu_model(x86).as_deref(), Some("AMD EPYC 7B13"));
        let arm = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd40\n";
        assert_eq!(parse_cpu_model(arm).as_deref(), Some("arm 0x41 0xd40"));
        assert_eq!(parse_cpu_model(""), None);
    }

    #[test]
    fn knows_this_machine() {
        assert!(is_local("localhost"));
        assert!(is_local("127.0.0.1"));
        assert!(is_local("[::1]"));
        assert!(!is_local("192.0.2.7"));
    }
}
