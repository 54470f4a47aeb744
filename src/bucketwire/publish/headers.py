"""What publishers call that which travels beside a body, where the transport has no place of its own for it.

The AsyncAPI document is written with these names, and with the prefixes of each publisher for attributes of
CloudEvents.
"""

CONTENT_TYPE = "content-type"
EVENT_ID = "bucketwire-event-id"
KEY = "bucketwire-key"
"""The raw key; a message that is about no object has none."""
