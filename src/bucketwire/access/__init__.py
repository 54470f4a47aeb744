"""Who may call: credentials and users."""
