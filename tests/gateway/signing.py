"""Clients of boto3 that sign or address otherwise than the usual one."""

from typing import Any

import boto3
from botocore.config import Config

from bucketwire.access.credentials import Credentials
from gateway.running import ROOT


def client_that_signs(
    url: str, signature_version: str, style: str = "path", credentials: Credentials = ROOT
) -> Any:
    """A client for S3; `s3` is Signature Version 2, `s3v4` Version 4."""
    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=credentials.access_key,
        aws_secret_access_key=credentials.secret_key,
        config=Config(
            retries={"total_max_attempts": 1},
            signature_version=signature_version,
            s3={"addressing_style": style},
        ),
    )
