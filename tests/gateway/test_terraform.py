"""Terraform's AWS provider: it makes, finds nothing left to do, changes and destroys.

Needs `terraform` and the provider, from the network or from a folder that TERRAFORM_PLUGIN_DIR names.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.running import ROOT, RunningGateway

CONFIGURATION = """
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

provider "aws" {
  region                      = "us-east-1"
  access_key                  = "%(access_key)s"
  secret_key                  = "%(secret_key)s"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
  s3_use_path_style           = true
  endpoints {
    s3  = "%(url)s"
    sns = "%(url)s"
  }
}

resource "aws_sns_topic" "events" {
  name         = "terraform-events"
  display_name = "Events"
  tags         = { team = "blue" }
}

resource "aws_sns_topic_policy" "events" {
  arn = aws_sns_topic.events.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "s3.amazonaws.com" }
      Action    = "SNS:Publish"
      Resource  = aws_sns_topic.events.arn
      Condition = { ArnLike = { "aws:SourceArn" = aws_s3_bucket.media.arn } }
    }]
  })
}

resource "aws_s3_bucket" "media" {
  bucket        = "terraform-media"
  force_destroy = true
}

resource "aws_s3_bucket_versioning" "media" {
  bucket = aws_s3_bucket.media.id
  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_notification" "media" {
  bucket = aws_s3_bucket.media.id
  topic {
    topic_arn     = aws_sns_topic.events.arn
    events        = ["s3:ObjectCreated:*"]
    filter_prefix = "%(prefix)s"
    filter_suffix = ".mp4"
  }
  topic {
    id        = "removals"
    topic_arn = aws_sns_topic.events.arn
    events    = ["s3:ObjectRemoved:*"]
  }
}

resource "aws_s3_object" "first" {
  bucket  = aws_s3_bucket.media.id
  key     = "videos/first.mp4"
  content = "..."
}
"""


class Terraform:
    """Terraform in a folder, against a gateway."""

    def __init__(self, folder: Path, gateway: RunningGateway) -> None:
        self._folder = folder
        self._values = {"url": gateway.url, "access_key": ROOT.access_key, "secret_key": ROOT.secret_key}
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
        }

    def write(self, prefix: str) -> None:
        """Set the configuration."""
        (self._folder / "main.tf").write_text(CONFIGURATION % {**self._values, "prefix": prefix})

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        command = ["terraform", *arguments, "-no-color"]
        return subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def ok(self, *arguments: str) -> None:
        """Run a command that must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def terraform(tmp_path: Path, gateway: RunningGateway) -> Terraform:
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not installed: get it from its makers, and the provider hashicorp/aws")
    made = Terraform(tmp_path, gateway)
    made.write("videos/")
    plugins = os.environ.get("TERRAFORM_PLUGIN_DIR")
    started = made.run("init", "-input=false", *([f"-plugin-dir={plugins}"] if plugins else []))
    if started.returncode != 0:
        pytest.skip("the provider hashicorp/aws cannot be had: name its folder with TERRAFORM_PLUGIN_DIR")
    return made


def test_terraform_makes_changes_and_destroys_and_plans_are_empty_in_between(
    terraform: Terraform, gateway: RunningGateway
) -> None:
    terraform.ok("apply", "-auto-approve")
    assert terraform.run("plan", "-detailed-exitcode").returncode == 0
    s3 = gateway.client("s3")
    put = s3.get_bucket_notification_configuration(Bucket="terraform-media")["TopicConfigurations"]
    assert [rule["Events"] for rule in put] == [["s3:ObjectCreated:*"], ["s3:ObjectRemoved:*"]]
    terraform.write("films/")
    terraform.ok("apply", "-auto-approve")
    assert terraform.run("plan", "-detailed-exitcode").returncode == 0
    changed = s3.get_bucket_notification_configuration(Bucket="terraform-media")["TopicConfigurations"]
    assert {"Name": "Prefix", "Value": "films/"} in changed[0]["Filter"]["Key"]["FilterRules"]
    terraform.ok("destroy", "-auto-approve")
    assert "terraform-media" not in [each["Name"] for each in s3.list_buckets()["Buckets"]]
    s3.close()
