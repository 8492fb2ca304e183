{{- define "entail.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 54 | trimSuffix "-" }}
{{- end }}

{{/* Short enough for the longest suffix in a name of at most 63 characters. */}}
{{- define "entail.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- $full := printf "%s-%s" .Release.Name $name }}
{{- if contains $name .Release.Name }}{{ $full = .Release.Name }}{{ end }}
{{- .Values.fullnameOverride | default $full | trunc 45 | trimSuffix "-" }}
{{- end }}

{{- define "entail.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "entail.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "entail.clusterRoleName" -}}
{{- .Values.rbac.existingClusterRole | default (include "entail.fullname" .) }}
{{- end }}

{{- define "entail.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "entail.tlsSecretName" -}}
{{- .Values.tls.secretName | default (printf "%s-tls" (include "entail.fullname" .)) }}
{{- end }}

{{- define "entail.admissionSecretName" -}}
{{- .Values.admission.secretName | default (printf "%s-admission-tls" (include "entail.fullname" .)) }}
{{- end }}

{{- define "entail.insightSecretName" -}}
{{- printf "%s-insight-tls" (include "entail.fullname" .) }}
{{- end }}

{{/* The client certificate of `helm test`; empty if none is known. */}}
{{- define "entail.testSecretName" -}}
{{- $issued := and (eq .Values.tls.mode "certManager") .Values.tls.certManager.insight.create }}
{{- .Values.test.clientSecretName | default (ternary (include "entail.insightSecretName" .) "" $issued) }}
{{- end }}

{{/* Selects the pods of the server alone, and not those of the reporter, of tests or of another release. */}}
{{- define "entail.selectorLabels" -}}
app.kubernetes.io/name: {{ include "entail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{/*
The metadata of an object. Parameters: root, name; optional: app (label name), component, cluster (no namespace), labels,
annotations. Labels of users do not replace those of the chart, which selectors and Helm rely on.
*/}}
{{- define "entail.metadata" -}}
{{- $root := .root }}
{{- $labels := dict "app.kubernetes.io/name" (.app | default (include "entail.name" $root))
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name ($root.Chart.Version | replace "+" "_")) }}
{{- with .component }}{{ $_ := set $labels "app.kubernetes.io/component" . }}{{ end }}
{{- $labels = merge $labels (.labels | default dict) $root.Values.commonLabels }}
{{- $annotations := merge dict (.annotations | default dict) $root.Values.commonAnnotations }}
{{- $metadata := dict "name" .name "labels" $labels }}
{{- if not .cluster }}{{ $_ := set $metadata "namespace" $root.Release.Namespace }}{{ end }}
{{- if $annotations }}{{ $_ := set $metadata "annotations" $annotations }}{{ end }}
{{- toYaml $metadata }}
{{- end }}

{{/* The arguments of `entail serve` that the cluster's service and a sidecar have in common. */}}
{{- define "entail.commonArgs" -}}
- --health-listen={{ .Values.bindAddress }}:8081
# /metrics, /healthz, /readyz. They name assertions, but no policies or routes.
- --admin-listen={{ .Values.bindAddress }}:9464
- --admin-socket=/run/entail/admin.sock
{{- if .Values.checkpoint.enabled }}
- --checkpoint=/var/lib/entail/checkpoint
{{- end }}
{{- end }}

{{- define "entail.serverArgs" -}}
- serve
- --kube
- --listen={{ .Values.bindAddress }}:50051
- --tls-cert=/etc/entail/tls/tls.crt
- --tls-key=/etc/entail/tls/tls.key
- --tls-client-ca=/etc/entail/tls/ca.crt
# For operators in the pod: kubectl exec deploy/NAME -- /entail status --server unix:/run/entail/entail.sock
- --listen=unix:/run/entail/entail.sock
{{ include "entail.commonArgs" . }}
- --drain-timeout={{ int .Values.drainTimeout }}
- {{ printf "--log=%s" .Values.log.filter | quote }}
- --log-format={{ .Values.log.format }}
{{- if .Values.tls.accessRules }}
- --callers=/etc/entail/config/callers.yaml
{{- else }}
{{- $dataPlanes := .Values.tls.dataPlaneNames }}
{{- $insight := .Values.tls.insightNames }}
{{- if eq .Values.tls.mode "certManager" }}
{{- /* Data planes may use EffectivePolicyService only, the tools of operators both services. */}}
{{- with .Values.tls.certManager }}
{{- $dataPlanes = concat (list .dataPlane.name .insight.name) $dataPlanes }}
{{- $insight = concat (list .insight.name) $insight }}
{{- end }}
{{- end }}
{{- range $dataPlanes }}
- {{ printf "--data-plane-san=%s" . | quote }}
{{- end }}
{{- range $insight }}
- {{ printf "--insight-san=%s" . | quote }}
{{- end }}
{{- end }}
{{- if ne .Values.insight.auth "none" }}
- --insight-auth={{ .Values.insight.auth }}
{{- end }}
{{- with .Values.admission }}
{{- if .enabled }}
- --admission-listen={{ $.Values.bindAddress }}:8443
- --admission-tls-cert=/etc/entail/admission/tls.crt
- --admission-tls-key=/etc/entail/admission/tls.key
{{- if .clientCASecretName }}
- --admission-tls-client-ca=/etc/entail/admission-client-ca/ca.crt
{{- else }}
# API servers have no client certificate for webhooks unless they are configured to (docs/admission.md).
- --admission-any-client
{{- end }}
{{- if .fullNames }}
- --admission-full-names
{{- end }}
{{- end }}
{{- end }}
{{- range .Values.scope.onlyNamespaces }}
- --only-namespace={{ . }}
{{- end }}
{{- range .Values.scope.gateways }}
- --gateway={{ . }}
{{- end }}
{{- range .Values.scope.gatewayClasses }}
- --gateway-class={{ . }}
{{- end }}
{{- if .Values.profiles }}
- --profiles=/etc/entail/profiles
{{- end }}
{{- if .Values.envoyConfig }}
- --envoy-config=/etc/entail/config/envoy.yaml
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* Files that the server reads once, at its start: a change has to restart the pods. */}}
{{- define "entail.configFiles" -}}
{{- $files := dict }}
{{- with .Values.tls.accessRules }}{{ $_ := set $files "callers.yaml" . }}{{ end }}
{{- with .Values.envoyConfig }}{{ $_ := set $files "envoy.yaml" . }}{{ end }}
{{- toYaml $files }}
{{- end }}

{{/* The ClusterRoles that deploy/rbac has, as a list of {name, rules}; `core` comes first. */}}
{{- define "entail.roles" -}}
{{- $roles := list }}
{{- range splitList "\n---\n" (.Files.Get "files/roles.yaml") }}
{{- with fromYaml . }}
{{- if .kind }}
{{- $name := trimPrefix "entail-" .metadata.name }}
{{- if or (eq $name "core") (has $name $.Values.rbac.controllers) }}
{{- $roles = append $roles (dict "name" $name "rules" .rules) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $roles }}
{{- end }}

{{/* Combinations that the schema cannot explain. */}}
{{- define "entail.validate" -}}
{{- $issued := eq .Values.tls.mode "certManager" }}
{{- with .Values.admission }}
{{- if and .enabled (not $issued) (not .caCertificate) }}
{{- fail "admission.caCertificate is empty: the API server needs the CA of the webhook's certificate in PEM, unless cert-manager issues it (tls.mode=certManager)" }}
{{- end }}
{{- if and .enabled $issued .caCertificate }}
{{- fail "admission.caCertificate has no effect with tls.mode=certManager, which adds the CA itself: remove it" }}
{{- end }}
{{- end }}
{{- range $name, $_ := .Values.profiles }}
{{- if not (regexMatch "^[A-Za-z0-9_-][A-Za-z0-9._-]*[.]ya?ml$" $name) }}
{{- fail (printf "profiles.%s: the server reads files whose names end with .yaml or .yml" $name) }}
{{- end }}
{{- end }}
{{- if and .Values.tls.accessRules (or .Values.tls.dataPlaneNames .Values.tls.insightNames) }}
{{- fail "tls.accessRules replaces tls.dataPlaneNames and tls.insightNames: set one or the other" }}
{{- end }}
{{- with .Values.reports }}
{{- if and .enabled (not .clientSecretName) (not (and $issued $.Values.tls.certManager.insight.create)) }}
{{- fail "reports.clientSecretName is empty: the reporter needs a client certificate that the server allows for PolicyInsightService" }}
{{- end }}
{{- end }}
{{- with .Values.autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
{{- fail (printf "autoscaling.minReplicas (%d) is above autoscaling.maxReplicas (%d)" (int .minReplicas) (int .maxReplicas)) }}
{{- end }}
{{- if and .enabled (not .metrics) (eq (int .targetCPUUtilizationPercentage) 0) }}
{{- fail "autoscaling has neither targetCPUUtilizationPercentage nor metrics" }}
{{- end }}
{{- end }}
{{- $managed := list "kube" "listen" "tls-cert" "tls-key" "tls-client-ca" "health-listen" "admin-listen" "admin-socket"
  "checkpoint" "drain-timeout" "log" "log-format" "callers" "data-plane-san" "insight-san" "insight-auth"
  "insecure-listen" "admission-listen" "admission-tls-cert" "admission-tls-key" "admission-tls-client-ca"
  "admission-any-client" "admission-full-names" "only-namespace" "gateway" "gateway-class" "profiles" "envoy-config" }}
{{- range concat .Values.extraArgs .Values.sidecar.extraArgs }}
{{- if has (. | trimPrefix "--" | splitList "=" | first) $managed }}
{{- fail (printf "%s in extraArgs: the chart sets this argument, from a value of its own or because it is needed" .) }}
{{- end }}
{{- end }}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) .Values.rbac.create }}
{{- fail "serviceAccount.name is empty: with serviceAccount.create=false, the permissions would go to the account `default` of the namespace" }}
{{- end }}
{{- end }}
