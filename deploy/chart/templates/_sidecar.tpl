{{/*
entail beside a proxy, for charts that have this one as a dependency; the context is that of the dependency:
  initContainers:
  - {{- include "entail.sidecar.container" .Subcharts.entail | nindent 4 }}
examples/sidecar.yaml shows the whole pod.
*/}}
{{- define "entail.sidecar.container" -}}
# A native sidecar: it starts before the proxy, stops after it, and can restart alone.
name: entail
image: {{ include "entail.image" . }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
restartPolicy: Always
args:
- serve
- --kube
- --listen=unix:/run/entail/entail.sock
{{ include "entail.commonArgs" . }}
- --drain-timeout={{ int .Values.sidecar.drainTimeout }}
- {{ printf "--log=%s" .Values.log.filter | quote }}
- --log-format={{ .Values.log.format }}
{{- range .Values.sidecar.gateways }}
- --gateway={{ . }}
{{- end }}
{{- range .Values.sidecar.extraArgs }}
- {{ . | quote }}
{{- end }}
ports:
- {name: health, containerPort: 8081}
- {name: metrics, containerPort: 9464}
# The proxy starts when this probe succeeds, with the first complete snapshot, so that it never has to serve a request
# without policies. After five minutes the container is restarted and uses its checkpoint.
startupProbe:
  grpc: {port: 8081}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 300
# The readiness of a sidecar is part of the readiness of its pod. Uses the socket, as the proxy does.
readinessProbe:
  exec:
    command: [/entail, health, "--server=unix:/run/entail/entail.sock", --timeout=2]
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 3
livenessProbe:
  grpc: {port: 8081, service: liveness}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
resources:
  {{- toYaml .Values.sidecar.resources | nindent 2 }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
# The volume of the socket, which the proxy mounts, too.
- {name: entail, mountPath: /run/entail}
{{- if .Values.checkpoint.enabled }}
- {name: checkpoint, mountPath: /var/lib/entail}
{{- end }}
- {name: account, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end }}

{{- define "entail.sidecar.volumes" -}}
- name: entail
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- if .Values.checkpoint.enabled }}
# Outlives the container: a restarted sidecar serves from its checkpoint at once.
- name: checkpoint
  emptyDir: {sizeLimit: {{ .Values.checkpoint.sizeLimit }}}
{{- end }}
# Only the sidecar mounts a token: the proxy does not use the API server.
- name: account
  projected:
    defaultMode: 0440
    sources:
    - serviceAccountToken: {path: token, expirationSeconds: 3607}
    - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
    - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end }}
