//! The name under which programs look for the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if target == "linux" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcherrygrove.so.0");
    }
    let of_build = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo:rustc-env=CG_TARGET={}", of_build("TARGET"));
    println!("cargo:rustc-env=CG_PROFILE={}", of_build("PROFILE"));
}
