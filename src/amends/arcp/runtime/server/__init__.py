"""Connections and sessions: the handshake, requests, subscriptions, delivery of events, and resuming."""
