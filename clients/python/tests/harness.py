"""What tests and benchmarks need: a server process, a proxy that cuts connections, and manifests that change."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import yaml

import entail_client

BAKERY = Path(__file__).resolve().parents[3] / "examples" / "bakery"
RETRY = "RetryPolicy.policies.bakery.example"
TIMEOUT = "TimeoutPolicy.policies.bakery.example"
CACHE = "CachePolicy.policies.bakery.example"
BREAD = "gateways/platform/storefront/listeners/https/routes/HTTPRoute/baker/bread"

T = TypeVar("T")


def wait_until(get: Callable[[], T], timeout: float = 20.0, *, what: str = "a condition") -> T:
    """Call a function until it returns something true, and return that."""
    deadline = time.monotonic() + timeout
    while not (value := get()):
        assert time.monotonic() < deadline, f"{what} was not reached within {timeout} s"
        time.sleep(0.01)
    return value


class Server:
    """A process of `entail serve` at a Unix socket in a folder, which it may be started at again."""

    def __init__(self, folder: Path, manifests: Path, *options: str, tcp: bool = False) -> None:
        self.folder = folder
        self.manifests = manifests
        self.options = options
        self.tcp = tcp
        self.address = f"unix:{folder}/entail.sock"
        self.process: subprocess.Popen[bytes] | None = None
        self.log = folder / "server.log"

    def start(self) -> None:
        """Start the server and wait until it serves."""
        binary = os.environ.get("ENTAIL", "")
        assert Path(binary).is_file(), f"ENTAIL must be the path of the binary of entail, and is `{binary}`"
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        listen = ["--listen", "127.0.0.1:0", "--port-file", str(port_file)] if self.tcp else ["--listen", self.address]
        command = [binary, "serve", "--manifests", str(self.manifests), "--drain-timeout", "1", *listen, *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if self.tcp:
            wait_until(lambda: port_file.exists() and port_file.read_text().strip(), what="the port file")
            self.address = port_file.read_text().strip()
        else:
            with entail_client.connect(self.address) as client:
                client.wait_serving(20)

    def stop(self) -> None:
        """End the server, and wait for its end."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(15)
            finally:
                self.process.kill()
                self.process.wait(5)
            self.process = None

    def pause(self) -> None:
        """Stop the process from running, and wait until it is stopped."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Let the process run again."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class Proxy:
    """Forwards TCP connections at a loopback port to a Unix socket, counts bytes, and cuts connections."""

    def __init__(self, server: Server) -> None:
        self.target = server.address.removeprefix("unix:")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.received = 0
        self.lock = threading.Lock()
        self.sockets: list[socket.socket] = []
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def cut(self) -> None:
        """Close all connections."""
        with self.lock:
            for connection in self.sockets:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self.sockets.clear()

    def close(self) -> None:
        """Close the listener and all connections."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.threads[0].join(5)
        self.cut()
        for thread in self.threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            if server.connect_ex(self.target) != 0:
                client.close()
                server.close()
                continue
            with self.lock:
                self.sockets += [client, server]
            for source, target, counts in ((client, server, False), (server, client, True)):
                thread = threading.Thread(target=self._forward, args=(source, target, counts))
                self.threads.append(thread)
                thread.start()

    def _forward(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        # Either end may close first: the other one is then closed, too.
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if counts:
                    self.received += len(data)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


Manifest = dict[str, Any]


class World:
    """Manifests in one file, which change at random."""

    MARKER = "gateways/platform/front/listeners/http/routes/HTTPRoute/shop/marker/rules/mark"
    NAMESPACES = ("platform", "shop", "pay")

    def __init__(self, folder: Path, seed: int, routes: int = 4) -> None:
        self.random = random.Random(seed)
        self.folder = folder / "world"
        self.folder.mkdir()
        (self.folder / "profiles.yaml").write_text((BAKERY / "profiles.yaml").read_text())
        self.step = 0
        self.objects: dict[str, Manifest] = {}
        for name in self.NAMESPACES:
            self.put(manifest("v1", "Namespace", "", name))
        self.put(
            manifest("gateway.networking.k8s.io/v1", "GatewayClass", "", "c", controllerName="example.com/gateway")
        )
        for name in ("front", "back"):
            listeners = [
                {"name": listener, "port": port, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
                for listener, port in (("http", 80), ("other", 81))
            ]
            gateway = manifest("gateway.networking.k8s.io/v1", "Gateway", "platform", name)
            gateway["spec"] = {"gatewayClassName": "c", "listeners": listeners}
            self.put(gateway)
        for namespace in ("shop", "pay"):
            for name in ("a", "b"):
                self.put(manifest("v1", "Service", namespace, name, ports=[{"port": 80}]))
        self.put(self.route("shop", "marker", [parent("front", "http")], [{"name": "mark"}]))
        for number in range(routes):
            self.put(self.random_route(number))
        self.write()

    def put(self, value: Manifest) -> None:
        """Add or replace an object."""
        metadata = value["metadata"]
        self.objects[f"{value['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"] = value

    def write(self) -> int:
        """Write the manifests at once, with a marker of this step, and return the step."""
        self.step += 1
        # No other policy has this kind, so none overrides the step.
        policy = manifest("policies.bakery.example/v1", "CachePolicy", "shop", "marker")
        target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "marker", "sectionName": "mark"}
        policy["spec"] = {"targetRefs": [target], "step": self.step}
        self.put(policy)
        temporary = self.folder / ".world.tmp"
        temporary.write_text(yaml.safe_dump_all(self.objects.values()))
        temporary.rename(self.folder / "world.yaml")
        return self.step

    def change(self) -> None:
        """Create, change or delete a few routes and policies."""
        for _ in range(self.random.randint(1, 3)):
            number = self.random.randrange(8)
            choice = self.random.random()
            if choice < 0.25:
                self.put(self.random_route(number))
            elif choice < 0.35:
                for key in [
                    key for key in self.objects if key.startswith("HTTPRoute/") and key.endswith(f"/r{number}")
                ]:
                    del self.objects[key]
            elif choice < 0.8:
                self.put(self.random_policy(number))
            else:
                for key in [key for key in self.objects if key.endswith(f"/p{number}")]:
                    del self.objects[key]

    def route(self, namespace: str, name: str, parents: Sequence[Manifest], rules: Sequence[Manifest]) -> Manifest:
        """Return an HTTPRoute."""
        route = manifest("gateway.networking.k8s.io/v1", "HTTPRoute", namespace, name)
        route["spec"] = {"parentRefs": list(parents), "rules": list(rules)}
        return route

    def random_route(self, number: int) -> Manifest:
        """Return a route at Gateways or in the mesh, for all clients or those of one namespace."""
        namespace = self.random.choice(("shop", "pay"))
        service = {"group": "", "kind": "Service", "name": self.random.choice("ab"), "namespace": "shop"}
        gateways = [parent("front", "http"), parent("front", "other"), parent("back", "http")]
        parents = [service] if self.random.random() < 0.4 else self.random.sample(gateways, self.random.randint(1, 3))
        rules: list[Manifest] = []
        for name in self.random.sample(["one", "two", "", ""], self.random.randint(1, 4)):
            backends = [{"name": self.random.choice("ab"), "port": 80}] if self.random.random() < 0.7 else []
            rules.append({"backendRefs": backends, **({"name": name} if name else {})})
        return self.route(namespace, f"r{number}", parents, rules)

    def random_policy(self, number: int) -> Manifest:
        """Return a policy with a target that may or may not exist."""
        kind = self.random.choice(("RetryPolicy", "TimeoutPolicy"))
        namespace = self.random.choice(self.NAMESPACES)
        target = self.random.choice(
            [
                {
                    "group": "gateway.networking.k8s.io",
                    "kind": "Gateway",
                    "name": self.random.choice(("front", "back")),
                },
                {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": f"r{self.random.randrange(8)}"},
                {
                    "group": "gateway.networking.k8s.io",
                    "kind": "HTTPRoute",
                    "name": f"r{self.random.randrange(8)}",
                    "sectionName": self.random.choice(("one", "two")),
                },
                {"group": "", "kind": "Service", "name": self.random.choice("ab")},
                {"group": "", "kind": "Namespace", "name": namespace},
            ]
        )
        block = self.random.choice(("defaults", "overrides"))
        rules = {"strategy": self.random.choice(("atomic", "merge")), "value": self.random.randrange(100)}
        policy = manifest("policies.bakery.example/v1", kind, namespace, f"p{number}")
        policy["spec"] = {"targetRefs": [target], block: rules}
        return policy

    def paths_by_index(self, path: str) -> list[str]:
        """Return other names of a path: with the index of its rule instead of the name of the rule."""
        steps = path.split("/")
        if "rules" not in steps or steps[steps.index("rules") + 1].startswith("#"):
            return []
        at = steps.index("rules")
        _, namespace, name = steps[at - 3 : at]
        rules = self.objects[f"HTTPRoute/{namespace}/{name}"]["spec"]["rules"]
        index = next(index for index, rule in enumerate(rules) if rule.get("name") == steps[at + 1])
        steps[at + 1] = f"#{index}"
        return ["/".join(steps)]


def manifest(version: str, kind: str, namespace: str, name: str, **spec: object) -> Manifest:
    """Return a manifest."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **({"spec": spec} if spec else {})}


def parent(gateway: str, listener: str) -> Manifest:
    """Return a parentRef to a listener."""
    return {"name": gateway, "namespace": "platform", "sectionName": listener}


def wait_for_step(client: entail_client.Client, step: int) -> None:
    """Wait until a server has read the manifests of a step."""

    def has_read() -> bool:
        try:
            return bool(client.get(World.MARKER, kinds=[CACHE]).spec(CACHE) == {"step": step})
        except entail_client.UnavailableError:
            return False

    wait_until(has_read, what=f"step {step} of the server")
