"""One module per service or family of services; each has VENDORS."""
