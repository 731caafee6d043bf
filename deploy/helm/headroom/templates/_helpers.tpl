{{/* The image of admission and operator. */}}
{{- define "headroom.image" -}}
{{ include "headroom.reference" (dict "image" .Values.image "tag" .Chart.AppVersion) }}
{{- end }}

{{/* The image of the agent, which has the helper for probes. */}}
{{- define "headroom.agentImage" -}}
{{ include "headroom.reference" (dict "image" .Values.agent.image "tag" .Chart.AppVersion) }}
{{- end }}

{{/* image: its values; tag: if they name none. */}}
{{- define "headroom.reference" -}}
{{ .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .tag }}{{ end }}
{{- end }}

{{/* Fields of a pod: name of the component. */}}
{{- define "headroom.pod" -}}
serviceAccountName: headroom-{{ .name }}
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: { app.kubernetes.io/component: {{ .name }}, app.kubernetes.io/name: headroom }
{{- end }}

{{/* Fields of a container that runs a component of the image. nodeOptions: of its Node.js; empty: none. */}}
{{- define "headroom.container" -}}
image: {{ include "headroom.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  - name: POD_NAME
    valueFrom: { fieldRef: { fieldPath: metadata.name } }
  - name: POD_NAMESPACE
    valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
  {{- with .nodeOptions }}
  - { name: NODE_OPTIONS, value: {{ . | quote }} }
  {{- end }}
ports:
  - { name: https, containerPort: 8443 }
  - { name: metrics, containerPort: 8081 }
livenessProbe:
  httpGet: { path: /livez, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: { path: /readyz, port: metrics }
  periodSeconds: 5
{{ include "headroom.confined" . }}
{{- end }}

{{- define "headroom.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{- define "headroom.labels" -}}
app.kubernetes.io/name: headroom
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* Not empty if this release has created the object. */}}
{{- define "headroom.owns" -}}
{{- $annotations := .object.metadata.annotations | default dict }}
{{- $name := get $annotations "meta.helm.sh/release-name" }}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" }}
{{- if and (eq $name .root.Release.Name) (eq $namespace .root.Release.Namespace) }}yes{{ end }}
{{- end }}
