"""The S3 and SNS front door: ASGI, signatures, one function an operation."""
