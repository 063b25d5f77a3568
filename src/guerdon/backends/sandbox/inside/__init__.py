"""What runs inside the sandbox: standard library only, importable both as this package and bare, as `inside`."""
