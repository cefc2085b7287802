"""Other libraries' failures, really failing wherever the library is installed."""
