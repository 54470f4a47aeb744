"""The attributes that topics of AWS have and ours do not.

Terraform and others send them with the value that changes nothing. That value is taken and forgotten; any
other asks for what nobody does here, and is refused.
"""

_FEEDBACK_FROM = ("HTTP", "Firehose", "Lambda", "Application", "SQS")

WORDS_FOR_NOTHING = {
    "FifoTopic": "false",
    "ContentBasedDeduplication": "false",
    "FifoThroughputScope": "",
    "ArchivePolicy": "{}",
    "DeliveryPolicy": "",
    "KmsMasterKeyId": "",
    "MaximumMessageSize": "",
    "SignatureVersion": "1",
    "TracingConfig": "passthrough",
    **{f"{each}SuccessFeedbackSampleRate": "0" for each in _FEEDBACK_FROM},
    **{f"{each}{what}FeedbackRoleArn": "" for each in _FEEDBACK_FROM for what in ("Success", "Failure")},
}
"""By attribute: what says nothing, in small letters. An empty value says nothing in all of them."""
