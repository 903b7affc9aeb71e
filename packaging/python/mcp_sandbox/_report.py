"""The report of a run as an object. Fields of later versions are in ``raw``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["enforced", "partial", "unavailable", "not_requested"]
EndingKind = Literal["exited", "signaled", "timeout", "memory_limit", "sandbox_failed", "not_started"]

#: The newest report this package knows the meaning of.
VERSION = 1


@dataclass(frozen=True)
class Control:
    """One boundary or limit."""

    status: Status
    #: The mechanism.
    by: str | None = None
    #: What of it does not hold, where the status is ``partial``.
    missing: str | None = None
    #: Why not, where the status is ``unavailable``.
    why: str | None = None
    #: What was read back from the kernel.
    seen: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ending:
    kind: EndingKind
    #: The exit code or the signal.
    number: int | None = None
    #: Why, for ``sandbox_failed`` and ``not_started``.
    why: str | None = None

    def describe(self) -> str:
        words = self.kind.replace("_", " ")
        more = self.why if self.why is not None else self.number
        return words if more is None else f"{words}: {more}"


@dataclass(frozen=True)
class Usage:
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    max_process_resident_bytes: int = 0
    max_tree_memory_bytes: int | None = None
    max_processes: int | None = None
    refused_processes: int = 0
    memory_kills: int = 0
    throttled_seconds: float | None = None


@dataclass(frozen=True)
class Guard:
    """What the guard said before anything ran."""

    decision: str
    rules: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    why: str | None = None


@dataclass(frozen=True)
class Undone:
    """Something new in a protected place, removed when the command had ended."""

    path: str
    why: str
    failed: str | None = None
    aside: str | None = None


@dataclass(frozen=True)
class Traffic:
    connections: int
    bytes_out: int
    bytes_in: int
    failed: int = 0
    trouble: str | None = None


@dataclass(frozen=True)
class Refusal:
    times: int
    why: str
    #: The flag that would allow it.
    flag: str | None = None


@dataclass(frozen=True)
class Network:
    reached: Mapping[str, Traffic] = field(default_factory=dict)
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    bounds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """What was enforced, as the kernel answered it."""

    version: int
    command: tuple[str, ...]
    controls: Mapping[str, Control]
    ending: Ending
    exit_code: int
    usage: Usage
    guard: Guard | None = None
    undone: tuple[Undone, ...] = ()
    network: Network = field(default_factory=Network)
    blocked_processes: int = 0
    stopped: str | None = None
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    #: All of it, as it was written.
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Report:
        """Raises ValueError for what is no report, or one whose fields mean something else."""
        version = raw.get("version")
        if not isinstance(version, int):
            raise ValueError("this is no report of mcp: it has no version")
        if version > VERSION:
            raise ValueError(f"the report has version {version}, and this package knows {VERSION}: install a newer one")
        try:
            return cls._from(version, raw)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no report of mcp: {error!r}") from error

    @classmethod
    def _from(cls, version: int, raw: Mapping[str, Any]) -> Report:
        network = raw.get("network") or {}
        guard = raw.get("guard")
        return cls(
            version=version,
            command=tuple(raw["command"]),
            controls={name: _known(Control, it, seen=tuple(it.get("seen", ()))) for name, it in raw["controls"].items()},
            ending=_ending(raw["ending"]),
            exit_code=raw["exit_code"],
            usage=_known(Usage, raw["usage"]),
            guard=guard
            and _known(Guard, guard, rules=tuple(guard.get("rules", ())), noted=tuple(guard.get("noted", ()))),
            undone=tuple(_known(Undone, it) for it in raw.get("undone", ())),
            network=Network(
                reached={host: _known(Traffic, it) for host, it in network.get("reached", {}).items()},
                refused={host: _known(Refusal, it) for host, it in network.get("refused", {}).items()},
                bounds=tuple(network.get("bounds", ())),
            ),
            blocked_processes=raw.get("blocked_processes", 0),
            stopped=raw.get("stopped"),
            replaced=tuple(raw.get("replaced", ())),
            kept=tuple(raw.get("kept", ())),
            raw=raw,
        )


def _known(kind: Any, raw: Mapping[str, Any], **instead: Any) -> Any:
    """Only the fields that this version of the package has: a newer program may say more."""
    fields = {name: value for name, value in raw.items() if name in kind.__dataclass_fields__}
    return kind(**{**fields, **instead})


def _ending(raw: Any) -> Ending:
    if isinstance(raw, str):
        return Ending(raw)  # type: ignore[arg-type]
    ((kind, value),) = raw.items()
    return Ending(kind, why=value) if isinstance(value, str) else Ending(kind, number=value)
