"""Notifications of people by apprise: Slack, mail, webhooks and many other services."""
