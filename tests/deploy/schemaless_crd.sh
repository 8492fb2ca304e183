# Sourced by the tests that apply what deploy/ holds to a real API server.

# A CRD without a schema for a kind whose operator is not installed: of its objects only group, version, kind and scope
# are checked, not the fields.
schemaless_crd() { # schemaless_crd GROUP VERSION KIND PLURAL [SCOPE]
  cat <<YAML
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $4.$1}
spec:
  group: $1
  scope: ${5:-Namespaced}
  names: {kind: $3, plural: $4, singular: ${3,,}}
  versions:
  - name: $2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
}
