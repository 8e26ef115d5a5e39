"""Numbers with their nouns: 1 exchange, 2 exchanges."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """As "1,204 exchanges"; plural where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
