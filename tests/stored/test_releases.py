"""What a release stored is never written again."""

import pytest

from tests.stored.releases import RELEASES, new_folder


def test_the_folder_of_a_release_is_not_written_again() -> None:
    with pytest.raises(AssertionError, match="Name a new version"):
        new_folder(RELEASES[0].name)
