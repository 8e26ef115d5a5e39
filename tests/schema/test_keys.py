"""Every API has its key by name, and no other name is there."""

import re

from kwire.schema import keys
from kwire.schema.registry import builtin


def test_the_names_are_those_of_the_definitions() -> None:
    named = {name: value for name, value in vars(keys).items() if name.isupper()}
    assert named == {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", api.name).upper(): api.key for api in builtin().apis()}
