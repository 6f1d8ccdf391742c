{{- define "pleach.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "pleach.group" -}}
{{ .Values.group | default .Release.Name }}
{{- end }}

{{- define "pleach.selector" -}}
app.kubernetes.io/name: pleach
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pleach.labels" -}}
{{ include "pleach.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "pleach.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* Not empty if agents use the API server. */}}
{{- define "pleach.account" -}}
{{ if or .Values.arbiter.lease .Values.seeds.endpointSlice }}yes{{ end }}
{{- end }}
