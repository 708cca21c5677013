//! Lets the linker of macOS leave the symbols of Python to the interpreter that loads the extension module.
//!
//! maturin does this itself; `cargo xtask wheels` compiles without it. Linux needs nothing, and on Windows PyO3 names python3.dll.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|vendor| vendor == "apple") {
        println!("cargo::rustc-link-arg-cdylib=-undefined");
        println!("cargo::rustc-link-arg-cdylib=dynamic_lookup");
        // Otherwise the library names itself by the path where it was built.
        println!("cargo::rustc-link-arg-cdylib=-Wl,-install_name,@rpath/_calmix.abi3.so");
    }
}
