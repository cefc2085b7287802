"""Credentials provisioned for jobs (section 9.8): the provider interface, and issuing, rotating and revoking."""
