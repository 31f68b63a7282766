"""Versions of items: random at first, and never shared by two items."""

import pytest

from dynamo._internal.model.objects import continues, new_version, next_version


@pytest.mark.parametrize("version", [None, 0, 1, 2, 1_000_000])
def test_an_item_without_a_random_version_gets_one(version: int | None) -> None:
    drawn = {next_version(version) for _ in range(1000)}

    assert len(drawn) == 1000
    assert {each.bit_length() for each in drawn} == {53}


@pytest.mark.parametrize("version", [new_version(), (1 << 61) + 5], ids=["53 bits", "62 bits"])
def test_a_version_is_continued_only_by_itself_and_the_versions_after_it(version: int) -> None:
    assert next_version(version) == version + 1
    assert all(continues(version + writes, version) for writes in (0, 1, 1_000_000))
    assert not any(continues(other, version) for other in (None, version - 1))
    assert not any(continues(new_version(), version) for _ in range(10))
