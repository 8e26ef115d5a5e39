"""The exception tree and the exit statuses.

    KwireError
    ├── DecodeError          bytes that are not what they should be; knows the path and the offset
    ├── CompressionError     records that do not decompress; TooLargeError: to more than the limit
    ├── EncodeError          a message that cannot be written; knows the path
    ├── SchemaError          a definition that cannot be read or merged; knows the file and the line
    ├── CaptureError         a file that is no capture, or damaged where nothing can be read any more
    ├── OutputError          a file that must not be written: it is read too, or would be lost
    ├── QueryError           SQL that cannot be run, or a result that a form cannot hold
    ├── JobError             a worker process failed; the message is its own
    ├── MissingPackage       a package that an extra brings is not there
    ├── UnknownDetector      no such detector or threshold
    ├── HookFailed           a test's hook on the embedded broker raised, or gave what is no answer
    ├── Failure              no answer of a broker, or none that can be used
    ├── Refusal              an answer of a broker that carries an error code (client/failure.py: it knows the exchange)
    ├── PeerRefused          a peer of the proxy says what cannot go on: its connection ends (proxy/types.py)
    ├── OptionError          an option of Spark has a value that it cannot have
    ├── NoSpark              Spark cannot run here
    ├── SparkFailed          Spark gave up
    ├── FilesUnreachable     another file system does not give its files
    ├── WrongType            a user's schema has a column of a type that it cannot have
    ├── SameNames            captures of different points have the same name
    ├── NoTopic              messages cannot be had from a topic
    ├── NoReport             there is nothing to report in a folder
    └── UnknownName          no such message, API, field, error code or version; knows the nearest ones

Everything that kwire raises on purpose is a KwireError, and the command line turns each into one line.
"""

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses of every command."""

    OK = 0
    MALFORMED = 1  # done, but something in the input was malformed or a finding is an error
    USAGE = 2
    NOT_KAFKA = 3  # nothing there was Kafka
    INTERRUPTED = 130
    CLOSED_PIPE = 141


class KwireError(Exception):
    """The root: anything that kwire raises on purpose."""


class DecodeError(KwireError):
    """Bytes that do not hold what they should.

    message is "FetchResponse v16", path is "Responses[0].Records" ("" is the message itself), offset counts bytes
    from the start of what was handed in, reason is "needs 4,096 bytes, has 97".
    """

    def __init__(self, message: str, path: str, offset: int, reason: str) -> None:
        self.message, self.path, self.offset, self.reason = message, path, offset, reason
        where = f"{message}: {path}" if path else message
        super().__init__(f"{where}: {reason}")


class CompressionError(KwireError):
    """The bytes do not decompress, or to more than the limit."""


class TooLargeError(CompressionError):
    """They decompress to more than the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"decompresses to more than {limit:,} bytes, the limit")


class EncodeError(KwireError):
    """A message that does not fit its definition. path is "Topics[0].Name"."""

    def __init__(self, message: str, path: str, reason: str) -> None:
        self.message, self.path, self.reason = message, path, reason
        where = f"{message}: {path}" if path else message
        super().__init__(f"{where}: {reason}")


class SchemaError(KwireError):
    """A definition that cannot be read, or two that cannot be merged."""

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(f"{where}: {reason}")


class CaptureError(KwireError):
    """A capture that cannot be read. source is the file or interface."""

    def __init__(self, source: str, reason: str) -> None:
        self.source, self.reason = source, reason
        super().__init__(f"{source}: {reason}")


class OutputError(KwireError):
    """A file that must not be written."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}")


class QueryError(KwireError):
    """SQL that cannot be run, in one line, or a result that a form cannot hold."""


class UnknownName(KwireError):
    """A name that kwire does not know; nearest holds the ones that it could have been."""

    def __init__(self, what: str, name: str, nearest: tuple[str, ...] = ()) -> None:
        self.what, self.name, self.nearest = what, name, nearest
        *others, last = nearest or ("",)
        hint = f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?" if nearest else ""
        super().__init__(f"no {what} {name}{hint}")


class SameNames(KwireError):
    """Captures of different points have the same name."""


class NoReport(KwireError):
    """There is nothing to report in a folder."""


class NoTopic(KwireError):
    """Messages cannot be had."""


class NoSpark(KwireError):
    """Spark cannot run here."""


class SparkFailed(KwireError):
    """Spark gave up."""


class WrongType(KwireError):
    """A user's schema has a column of a type that it cannot have."""


class FilesUnreachable(KwireError):
    """Another file system does not give its files."""


class OptionError(KwireError):
    """An option has a value that it cannot have."""


class JobError(KwireError):
    """A worker failed; the message is its own."""


class MissingPackage(KwireError):
    """A package that an extra brings is not there."""


class UnknownDetector(KwireError):
    """A detector or threshold that there is not."""


class HookFailed(KwireError):
    """A hook raised, or gave what is no answer; the text names its line."""


class Failure(KwireError):
    """No answer, or none that can be used.

    kind: name (no such host), refused, unreachable, timeout, closed, tls, sasl, not kafka, malformed, unsupported.
    where is the broker's address; hint, one clause, is what to do about it.
    """

    def __init__(self, kind: str, where: object, reason: str, hint: str = "") -> None:
        self.kind, self.where, self.reason, self.hint = kind, str(where), reason, hint
        self.status = Exit.NOT_KAFKA if kind == "not kafka" else Exit.MALFORMED
        super().__init__(f"{where}: {reason}{'; ' if hint else ''}{hint}")
