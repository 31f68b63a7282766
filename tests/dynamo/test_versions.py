"""Versions of items: random at first, and never shared by two items."""

from dynamo.model.objects import is_later_version, new_version, next_version


def test_a_first_version_is_random_and_has_53_bits() -> None:
    drawn = {draw() for draw in (new_version, lambda: next_version(None)) for _ in range(1000)}

    assert len(drawn) == 2000
    assert {version.bit_length() for version in drawn} == {53}


def test_a_version_is_continued_only_by_itself_and_the_versions_after_it() -> None:
    version = new_version()

    assert next_version(version) == version + 1
    assert all(is_later_version(version + writes, version) for writes in (0, 1, 1_000_000))
    assert not any(is_later_version(other, version) for other in (None, version - 1))
    assert not any(is_later_version(new_version(), version) for _ in range(10))
