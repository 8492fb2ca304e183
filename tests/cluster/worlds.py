"""Cases of tests/conformance in a cluster. Usage: worlds.py KUBECONFIG ADDRESS ADMIN CONFORMANCE"""
import json
import pathlib
import subprocess
import sys
import time

import yaml

from api import Admin, Api, check

# Cases whose expectation does not rest on times more than a second apart: objects are created in the order of their
# creationTimestamps, and the cluster gives them times of its own. Every source is here, and every feature of merging.
CASES = """
edges/a-block-counts-once-top-down
edges/an-atomic-block-overlaps-everything
eg-btp-listenerset-levels
eg-btp-most-specific-replaces-whole
eg-btp-merge-with-closest-parent-only
eg-selector-same-namespace
gep713-example-1-direct
gep713-example-2-defaults-overrides
gep713-example-3-merged-specs
gep713-picture-ingress-complex
gep713-picture-mesh-complex
gep713-picture-policy-admin
gep713-targetrefs-section-name
kuadrant-probes/three-levels-gateway-overrides-merge-route-defaults-merge-rule-bare
ngf-csp-leaf-defaults-down
ngf-usp-direct-on-service
policy-machinery/color-house-colours-over-two-routes
rfc0009/example-b2
rfc0009/example-e3
rfc0009/flowchart-2
semantics/4.1-higher-node-higher-policy-whatever-the-age
semantics/4.5-field-ascending
semantics/6.2-bottom-up-keeps-the-top-override
semantics/6.4-own-field-yields-to-overrides
semantics/6.6-numbers-keep-their-value
six-projects/each-kind-by-its-own-semantics
""".split()
ENOUGH = 12
FIXTURES = "fixtures.yaml"
PREFIX = "fixture:"
PERMISSIVE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

kubeconfig, address, admin, folder = sys.argv[1:]
api, admin = Api(kubeconfig), Admin(admin)


def group_of(thing):
    return thing["apiVersion"].rpartition("/")[0]


def kind_of(thing):
    return f"{thing['kind']}.{group_of(thing)}"


def documents(file):
    return yaml.load_all(file.read_text(), yaml.CSafeLoader)


def expanded(items, fixtures):
    """The items of a list of a case, with the objects of fixtures in place of their names."""
    found = []
    for item in items:
        is_fixture = isinstance(item, str) and item.startswith(PREFIX)
        found += fixtures[item.removeprefix(PREFIX)] if is_fixture else [item]
    return found


def chosen():
    found = {}
    conformance = pathlib.Path(folder)
    fixtures = {fixture["fixture"]: fixture.get("objects") or [fixture["object"]]
                for fixture in documents(conformance / FIXTURES)}
    for file in sorted(conformance.glob("*.yaml")):
        # The lists of pending and disputed cases and the fixtures have no field `name`.
        found.update((case["name"], case) for case in documents(file) if "name" in case)
    missing = [name for name in CASES if name not in found]
    if missing:
        sys.exit(f"no such cases: {missing}")
    return [found[name] | {field: expanded(found[name].get(field, []), fixtures) for field in ("profiles", "objects")}
            for name in CASES]


def create_crds(cases):
    """A CRD without a schema for each kind that the server does not know, with all versions that are used."""
    kinds = {}
    for thing in (thing for case in cases for thing in case["objects"]):
        if "." in group_of(thing) and not group_of(thing).endswith("k8s.io"):
            kinds.setdefault((group_of(thing), thing["kind"]), []).append(thing)
    for (group, kind), things in kinds.items():
        plural = kind.lower() + "s"
        versions = sorted({thing["apiVersion"].rpartition("/")[2] for thing in things})
        api.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group, "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "scope": "Namespaced" if all("namespace" in thing["metadata"] for thing in things) else "Cluster",
                "versions": [{"name": version, "served": True, "storage": version == versions[0],
                              "schema": {"openAPIV3Schema": PERMISSIVE}} for version in versions],
            },
        })
    return {f"{kind}.{group}" for group, kind in kinds}


def collection(thing, known={}):
    """The URL path of an object's kind and namespace."""
    version = thing["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    for _ in range(100):
        if (base, thing["kind"]) in known:
            break
        served = api.ask("GET", base)[1]
        for resource in served["resources"] if isinstance(served, dict) and "resources" in served else []:
            if "/" not in resource["name"]:
                known[base, resource["kind"]] = resource["name"], resource["namespaced"]
        time.sleep(0 if (base, thing["kind"]) in known else 0.1)
    plural, namespaced = known[base, thing["kind"]]
    return f"{base}/namespaces/{thing['metadata']['namespace']}/{plural}" if namespaced else f"{base}/{plural}"


def namespace(name, labels=None):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}


def create(case):
    """What was created, and why something was refused if it was."""
    profiles = [profile for profile in case["profiles"] if isinstance(profile, dict)]
    spaces = {name: namespace(name) for name in
              {thing["metadata"].get("namespace") for thing in case["objects"]} - {None, "default"}}
    rest = []
    for thing in case["objects"]:
        if kind_of(thing) == "Namespace.":
            spaces[thing["metadata"]["name"]] = namespace(thing["metadata"]["name"], thing["metadata"].get("labels"))
        else:
            rest.append(thing)
    rest.sort(key=lambda thing: str(thing["metadata"].get("creationTimestamp", "")))
    made = []
    for thing in profiles + list(spaces.values()) + rest:
        thing = thing | {"metadata": {key: value for key, value in thing["metadata"].items()
                                      if key not in ("creationTimestamp", "resourceVersion", "uid", "generation")}}
        for _ in range(50):
            status, answer = api.ask("POST", collection(thing), thing)
            # A CRD that is new is served a moment later.
            if status != 404:
                break
            time.sleep(0.1)
        if status >= 300:
            return made, f"{kind_of(thing)} {thing['metadata']['name']}: {answer}"
        made.append(thing)
    return made, None


def remove(made):
    for thing in reversed(made):
        path = f"{collection(thing)}/{thing['metadata']['name']}"
        api.do("DELETE", path)
        if kind_of(thing) == "Namespace.":
            # No controller runs here that empties namespaces and lets them go.
            found = api.do("GET", path)
            api.do("PUT", path + "/finalize", found | {"spec": {"finalizers": []}})


def ask(path):
    """The policies of a path by kind."""
    told = subprocess.run(
        ["grpcurl", "-plaintext", "-d", json.dumps({"path": path}), address,
         "entail.v1.EffectivePolicyService/GetEffectivePolicies"], capture_output=True, text=True)
    if told.returncode != 0:
        return told.stderr.strip().replace("\n", " ")
    policies = json.loads(told.stdout)["result"].get("policies", [])
    return {f"{policy['kind']}.{policy['group']}": json.loads(policy["specJson"])
            for policy in policies if "specJson" in policy}


def differences(case):
    found = []
    for one in case["expect"]["effective"]:
        answer = ask(one["path"])
        for kind, rules in one.get("policies", {}).items():
            says = answer if isinstance(answer, str) else answer.get(kind)
            if says != rules:
                found.append(f"{one['path']} {kind}: expected {json.dumps(rules)}, found {json.dumps(says)}")
    return found


def wrong(case, made):
    """What is not yet, or not, as the case expects it."""
    metrics = admin.metrics()
    for kind in kinds:
        # Nothing of the case before counts any more, and all of this one does.
        found = metrics.get(f'entail_objects{{kind="{kind}"}}', 0)
        wanted = sum(kind_of(thing) == kind for thing in made)
        if found != wanted:
            return [f"{found:.0f} {kind} are known, {wanted} were created"]
    return differences(case)


cases = chosen()
kinds = create_crds(cases)
tried = asked = 0
for case in cases:
    made, refused = create(case)
    if refused:
        print(f"left out: {case['name']}: {refused[:300]}")
    else:
        end = time.monotonic() + 20
        while (differs := wrong(case, made)) and time.monotonic() < end:
            time.sleep(0.1)
        check(case["name"], not differs, "; ".join(differs))
        tried, asked = tried + 1, asked + sum(len(one.get("policies", {})) for one in case["expect"]["effective"])
    remove(made)
check(f"{tried} cases in a cluster are enough, {asked} answers", tried >= ENOUGH, f"at least {ENOUGH}")
