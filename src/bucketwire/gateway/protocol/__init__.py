"""Requests and responses of S3 and SNS, read and written by botocore's service models."""
