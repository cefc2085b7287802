"""The nodes that share a store: membership, dispatch of queued jobs, takeover, retention and quotas."""
