"""The demo's flaky services. Each uses amends on the server side and fails in its own dialect."""
