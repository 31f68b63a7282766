"""The sockets on which processes listen, by Linux's tables of them (proc(5))."""

from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

PROC = Path("/proc")
#: For each protocol, the state of a socket that everybody can send to.
_STATES = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}


def descendants(pid: int) -> set[int]:
    """The processes that this one has started, and those that they have started."""
    listed = (path.read_text() for path in PROC.glob(f"{pid}/task/*/children"))
    children = {int(child) for line in listed for child in line.split()}
    return children.union(*map(descendants, children))


def listening(pids: set[int]) -> list[str]:
    """Each socket on which the processes listen, such as `tcp 127.0.0.1:8000`."""
    links, found = set(), []
    for descriptor in (link for pid in pids for link in PROC.glob(f"{pid}/fd/*")):
        with suppress(FileNotFoundError):  # it was closed meanwhile
            links.add(str(descriptor.readlink()))
    for protocol, state in _STATES.items():
        for line in (PROC / "net" / protocol).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == state and f"socket:[{words[9]}]" in links:
                address, port = words[1].split(":")
                # Words of 32 bits in the order of this machine's bytes.
                packed = bytes.fromhex(address)
                swapped = [packed[at : at + 4][::-1] for at in range(0, len(packed), 4)]
                found.append(f"{protocol} {ip_address(b''.join(swapped))}:{int(port, 16)}")
    return found
