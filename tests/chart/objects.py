"""Objects that Helm and Kustomize render, for tests/chart/run.

compare KUSTOMIZE HELM [EXPECTATION...]   prints each difference
selectors HELM                            prints each selector that does not select the pods that it is meant for
flags HELM HELP_FOLDER                    prints each argument that is not in HELP_FOLDER/SUBCOMMAND
args HELM KIND/NAME CONTAINER             prints the arguments of a container, one a line
"""

import pathlib
import re
import sys

import yaml

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Labels that Helm's conventions add to each object. Kustomize has nothing like them.
ADDED_TO_OBJECTS = {
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
}
# So that two releases in one namespace have different pods, this one is also in selectors and on pods.
ADDED_EVERYWHERE = {"app.kubernetes.io/instance"}


def read(file):
    objects = {}
    for document in yaml.load_all(pathlib.Path(file).read_text(), Loader):
        if not document:
            continue
        metadata = document["metadata"]
        key = f"{document['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"
        if key in objects:
            sys.exit(f"{file}: {key} twice")
        objects[key] = document
    return objects


def normalise(value, parent=""):
    """Removes the labels that Helm's conventions add, and nothing else."""
    if isinstance(value, list):
        return [normalise(item, parent) for item in value]
    if not isinstance(value, dict):
        return value
    gone = set()
    if parent in ("labels", "matchLabels", "selector"):
        gone = ADDED_EVERYWHERE | (ADDED_TO_OBJECTS if parent == "labels" else set())
    return {key: normalise(item, key) for key, item in value.items() if key not in gone}


def without_hash(objects):
    """Takes off the hash that Kustomize adds to the name of the ConfigMap `envoy`. The chart of a proxy names its own."""
    text = yaml.dump(list(objects.values()))
    names = re.findall(r"\benvoy-[a-z0-9]{10}\b", text)
    for name in set(names):
        text = text.replace(name, "envoy")
    return {
        f"{item['kind']}/{item['metadata'].get('namespace', '')}/{item['metadata']['name']}": item
        for item in yaml.load(text, Loader)
    }


def differences(left, right, where):
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys(), key=str):
            if key not in left:
                yield f"{where}.{key}: only the chart has it: {right[key]!r}"
            elif key not in right:
                yield f"{where}.{key}: only Kustomize has it: {left[key]!r}"
            else:
                yield from differences(left[key], right[key], f"{where}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, pair in enumerate(zip(left, right)):
            yield from differences(*pair, f"{where}[{number}]")
    elif left != right or type(left) is not type(right):
        yield f"{where}: Kustomize {left!r}, chart {right!r}"


def by_name(value):
    """Lists whose order means nothing to Kubernetes, sorted by the names of their items."""
    if isinstance(value, dict):
        return {
            key: sorted((by_name(item) for item in items), key=lambda item: item["name"])
            if key in ("volumes", "volumeMounts") else by_name(items)
            for key, items in value.items()
        }
    return [by_name(item) for item in value] if isinstance(value, list) else value


def compare(kustomize, helm, *expectations):
    left, right = read(kustomize), read(helm)
    # The test of `helm test` has no counterpart.
    right = {key: item for key, item in right.items()
             if "helm.sh/hook" not in item["metadata"].get("annotations", {})}
    if "sidecar" in expectations:
        left = without_hash(left)
        # The configuration of the proxy is no part of the example.
        left = {key: item for key, item in left.items() if key.split("/")[0::2] != ["ConfigMap", "envoy"]}
    if len(left) < 10:
        print(f"only {len(left)} objects: this script reads them wrongly")
    for key in sorted(left.keys() | right.keys()):
        if key not in right:
            print(f"{key}: only Kustomize has it")
        elif key not in left:
            print(f"{key}: only the chart has it")
        else:
            for line in differences(by_name(normalise(left[key])), by_name(normalise(right[key])), key):
                print(line)
    print(f"{len(left)} objects", file=sys.stderr)


def pod_templates(objects):
    for key, item in objects.items():
        if item["kind"] == "Pod":
            yield key, item["metadata"], item["spec"]
        elif item["kind"] in ("Deployment", "StatefulSet", "DaemonSet"):
            yield key, item["spec"]["template"]["metadata"], item["spec"]["template"]["spec"]


def selectors(helm):
    objects = read(helm)
    pods = {key: metadata.get("labels", {}) for key, metadata, _ in pod_templates(objects)}
    found = {}
    for key, item in objects.items():
        spec = item.get("spec", {})
        kind = item["kind"]
        if kind == "Service":
            found[key] = spec["selector"]
        elif kind == "NetworkPolicy":
            found[key] = spec["podSelector"]["matchLabels"]
        elif kind in ("Deployment", "PodDisruptionBudget"):
            found[key] = spec["selector"]["matchLabels"]
        if kind == "Deployment":
            for number, constraint in enumerate(spec["template"]["spec"].get("topologySpreadConstraints", [])):
                found[f"{key}#{number}"] = constraint["labelSelector"]["matchLabels"]
    server = next(key for key in pods if key.startswith("Deployment/") and not key.endswith("-reporter"))
    for key, selector in found.items():
        selected = [pod for pod, labels in pods.items() if selector.items() <= labels.items()]
        expected = key.split("#")[0] if key.startswith("Deployment/") else server
        if selected != [expected]:
            print(f"{key} selects {selected}, and not {expected}")


def containers(objects):
    for key, _, spec in pod_templates(objects):
        for container in spec.get("initContainers", []) + spec["containers"]:
            yield key, container


def flags(helm, folder):
    count = 0
    for key, container in containers(read(helm)):
        commands = [container.get("args", [])]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            commands.append(container.get(probe, {}).get("exec", {}).get("command", [])[1:])
        for command in filter(None, commands):
            file = pathlib.Path(folder, command[0])
            # Envoy's.
            if command[0] == "--config-path":
                continue
            if not file.is_file():
                print(f"{key}: {container['name']}: no command {command[0]}")
                continue
            known = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", file.read_text()))
            for word in command[1:]:
                count += 1
                if word.startswith("--") and word.partition("=")[0] not in known:
                    print(f"{key}: {container['name']}: {command[0]} has no {word}")
    if not count:
        print("no arguments: this script reads them wrongly")


def args(helm, name, container):
    kind, _, name = name.partition("/")
    for key, found in containers(read(helm)):
        if key.startswith(f"{kind}/") and key.endswith(f"/{name}") and found["name"] == container:
            print("\n".join(found["args"]))
            return
    sys.exit(f"{helm}: no container {container} in {kind}/{name}")


{"compare": compare, "selectors": selectors, "flags": flags, "args": args}[sys.argv[1]](*sys.argv[2:])
