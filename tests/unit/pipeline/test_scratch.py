"""Folders for Spark's working files."""

from pathlib import Path

from bucketwire.pipeline.scratch import claim_scratch


def test_each_pipeline_has_a_folder_of_its_own_and_one_that_is_free_is_used_again(tmp_path: Path) -> None:
    first, lock = claim_scratch(tmp_path)
    second, other = claim_scratch(tmp_path)
    assert first != second
    lock.close()
    again, third = claim_scratch(tmp_path)
    assert again == first
    other.close()
    third.close()
