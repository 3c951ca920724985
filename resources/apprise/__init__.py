"""People, told by apprise: Slack, mail, webhooks and whatever else it knows."""
