"""Who takes part. Each module makes `Contender`s; nothing here knows the services' insides except the oracle."""
