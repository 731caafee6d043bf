"""Errors of the package. All derive from HeadroomError."""

from __future__ import annotations

from typing import Any, Dict, List, Optional


class HeadroomError(Exception):
    """Base of all errors of this package."""


class ApiError(HeadroomError):
    """The controller refused a request (RFC 9457); nothing was changed."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        errors: List[Dict[str, Any]],
        request_id: Optional[str],
        retry_after_seconds: Optional[float],
    ) -> None:
        super().__init__(detail)
        self.status = status
        """HTTP status."""
        self.code = code
        """Machine-readable reason; docs/rest.md lists the codes."""
        self.detail = detail
        """The reason in words."""
        self.errors = errors
        """The invalid fields, each with its JSON Pointer."""
        self.request_id = request_id
        """ID of the request in the controller's log."""
        self.retry_after_seconds = retry_after_seconds
        """Wait in seconds that the controller requests before the next attempt; None if there is
        none.
        """


class ConnectionFailed(HeadroomError):
    """The controller cannot be reached, the connection broke, or no answer came in time."""

    def __init__(self, message: str, *, is_unsent: bool) -> None:
        super().__init__(message)
        self.is_unsent = is_unsent
        """The request was never sent, so it is safe to retry."""


class ChannelCut(HeadroomError):
    """A command in a task, or a connection to it, was ended by the other side; the message has the
    cause.
    """


class UnexpectedAnswer(HeadroomError):
    """The response does not come from a controller: usually another server listens at that address."""


class SettingsError(HeadroomError):
    """An argument, an environment variable or the settings file is invalid."""


class TaskFailed(HeadroomError):
    """A task ended without success, or a lease ended too early."""

    def __init__(self, message: str, exit_code: Optional[int]) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        """Exit code of the command; None if it did not exit by itself."""
