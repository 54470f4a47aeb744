"""Message formats: each module turns (change, rule, topic) into a body."""
