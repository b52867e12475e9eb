"""A run of many audits and checks: the pytest plugin, what it stores and shows, the commands."""
